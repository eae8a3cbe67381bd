// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/kernel_facts.h"

#include "stat_index.skel.h"

#include <headroom/bpf/abi.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace headroom::observe {
namespace {

struct Encoding {
  std::size_t width;     // bytes
  std::uint32_t first;   // what position 0 is written as
  std::uint32_t absent;  // what "not kept" is written as
};
constexpr Encoding kEncodings[] = {{1, 0, 0xff}, {1, 1, 0}, {4, 1, 0}, {4, 0, ~0u}};

std::uint32_t entry(std::span<const unsigned char> table, std::size_t width, std::size_t item) {
  if (width == 1) return table[item];
  std::uint32_t value = 0;
  std::memcpy(&value, table.data() + item * sizeof value, sizeof value);
  return value;
}

std::optional<std::vector<std::uint32_t>> decode(std::span<const unsigned char> table,
                                                 std::size_t items, std::size_t length,
                                                 const Encoding& encoding) {
  if (table.size() < items * encoding.width) return std::nullopt;
  std::vector<std::uint32_t> positions(items, HR_NO_INDEX);
  std::vector<bool> taken(length, false);
  for (std::size_t item = 0; item < items; ++item) {
    const std::uint32_t written = entry(table, encoding.width, item);
    if (written == encoding.absent) continue;
    const std::uint32_t position = written - encoding.first;
    if (position >= length || taken[position]) return std::nullopt;
    taken[position] = true;
    positions[item] = position;
  }
  if (!std::all_of(taken.begin(), taken.end(), [](bool is) { return is; })) return std::nullopt;
  return positions;
}

}  // namespace

std::string_view name(StatIndices indices) {
  switch (indices) {
    case StatIndices::kUnknown:
      return "unknown";
    case StatIndices::kBtf:
      return "btf";
    case StatIndices::kTable:
      return "table";
    case StatIndices::kKfunc:
      return "kfunc";
  }
  return "unknown";
}

std::optional<std::vector<std::uint32_t>> decode_index_table(std::span<const unsigned char> table,
                                                             std::size_t items,
                                                             std::size_t length) {
  if (length == 0) return std::nullopt;
  for (const Encoding& encoding : kEncodings)
    if (auto positions = decode(table, items, length, encoding)) return positions;
  return std::nullopt;
}

namespace {

struct DestroyStatIndex {
  void operator()(stat_index_bpf* program) const { stat_index_bpf__destroy(program); }
};

// The kernel's enumerator of each hr_stat.
constexpr std::array<std::string_view, HR_STATS> kItems{
    "NR_ANON_MAPPED",
    "NR_FILE_PAGES",
    "NR_SHMEM",
    "NR_FILE_MAPPED",
    "NR_KERNEL_STACK_KB",
    "NR_PAGETABLE",
    "NR_SLAB_RECLAIMABLE_B",
    "NR_SLAB_UNRECLAIMABLE_B",
    "MEMCG_ZSWAP_B",
    "MEMCG_ZSWAPPED",
    "NR_SWAPCACHE",
    "NR_ANON_THPS",
    "NR_FILE_THPS",
    "NR_SHMEM_THPS",
    "WORKINGSET_REFAULT_ANON",
    "WORKINGSET_REFAULT_FILE",
    "PGFAULT",
    "PGMAJFAULT",
    "PGSCAN_KSWAPD",
    "PGSCAN_DIRECT",
    "PGSCAN_KHUGEPAGED",
    "PGSCAN_PROACTIVE",
    "PGSTEAL_KSWAPD",
    "PGSTEAL_DIRECT",
    "PGSTEAL_KHUGEPAGED",
    "PGSTEAL_PROACTIVE",
};

// One of the two arrays of memcg_vmstats, and the enumerators that number its items.
struct IndexTable {
  std::array<std::optional<std::uint32_t>, HR_STATS> enumerators;  // by hr_stat
  std::optional<std::uint32_t> items;                              // of the enumeration
  std::optional<std::uint32_t> length;                             // of the array
};

// What one walk over the kernel's types finds: there are more than 100,000 of them.
struct Found {
  std::uint32_t functions = 0;  // a bit for each of kFunctions
  bool has_rstat_hook = false;
  IndexTable state, events;
};

struct Function {
  std::string_view name;
  std::uint32_t kfunc;  // what it is part of
};
constexpr std::array<Function, 14> kFunctions{{
    {"bpf_rdonly_cast", HR_KFUNC_RDONLY_CAST},
    {"cgroup_rstat_flush", HR_KFUNC_CGROUP_FLUSH},
    {"css_rstat_flush", HR_KFUNC_CSS_FLUSH},
    {"bpf_get_mem_cgroup", HR_KFUNC_MEMCG},
    {"bpf_put_mem_cgroup", HR_KFUNC_MEMCG},
    {"bpf_mem_cgroup_page_state", HR_KFUNC_MEMCG},
    {"bpf_mem_cgroup_vm_events", HR_KFUNC_MEMCG},
    {"bpf_mem_cgroup_flush_stats", HR_KFUNC_MEMCG},
    {"bpf_iter_css_new", HR_KFUNC_CSS_ITER},
    {"bpf_iter_css_next", HR_KFUNC_CSS_ITER},
    {"bpf_iter_css_destroy", HR_KFUNC_CSS_ITER},
    {"bpf_cgroup_from_id", HR_KFUNC_CSS_ITER},
    {"bpf_cgroup_ancestor", HR_KFUNC_CSS_ITER},
    {"bpf_cgroup_release", HR_KFUNC_CSS_ITER},
}};

void note_enumerators(const btf* types, const btf_type* type, std::string_view count,
                      IndexTable& space) {
  const struct btf_enum* values = ::btf_enum(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const std::string_view value_name = btf__name_by_offset(types, values[i].name_off);
    const auto value = static_cast<std::uint32_t>(values[i].val);
    if (value_name == count) space.items = value;
    for (std::size_t item = 0; item < kItems.size(); ++item)
      if (value_name == kItems[item]) space.enumerators[item] = value;
  }
}

void note_lengths(const btf* types, const btf_type* type, Found& found) {
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const btf_type* member = btf__type_by_id(types, members[i].type);
    if (!member || !btf_is_array(member)) continue;
    const std::string_view member_name = btf__name_by_offset(types, members[i].name_off);
    if (member_name == "state") found.state.length = btf_array(member)->nelems;
    if (member_name == "events") found.events.length = btf_array(member)->nelems;
  }
}

Found scan_btf(const btf* types) {
  Found found;
  const std::uint32_t count = btf__type_cnt(types);
  for (std::uint32_t id = 1; id < count; ++id) {
    const btf_type* type = btf__type_by_id(types, id);
    const auto kind = btf_kind(type);
    if (kind != BTF_KIND_FUNC && kind != BTF_KIND_ENUM && kind != BTF_KIND_STRUCT) continue;
    const std::string_view type_name = btf__name_by_offset(types, type->name_off);
    if (kind == BTF_KIND_FUNC) {
      for (std::size_t i = 0; i < kFunctions.size(); ++i)
        if (type_name == kFunctions[i].name) found.functions |= 1u << i;
      if (type_name == "bpf_rstat_flush") found.has_rstat_hook = true;
    } else if (kind == BTF_KIND_ENUM) {
      if (type_name == "node_stat_item" || type_name == "memcg_stat_item")
        note_enumerators(types, type, "MEMCG_NR_STAT", found.state);
      if (type_name == "vm_event_item")
        note_enumerators(types, type, "NR_VM_EVENT_ITEMS", found.events);
    } else if (type_name == "memcg_vmstats") {
      note_lengths(types, type, found);
    }
  }
  return found;
}

// All functions of a kfunc's kin, or none of them.
std::uint32_t kfuncs_in(std::uint32_t functions) {
  std::uint32_t all = 0, lacking = 0;
  for (std::size_t i = 0; i < kFunctions.size(); ++i)
    (functions & (1u << i) ? all : lacking) |= kFunctions[i].kfunc;
  return all & ~lacking;
}

using StatIndexProgram = std::unique_ptr<stat_index_bpf, DestroyStatIndex>;

// Positions by enumerator, from the kernel's table, whose entries are bytes or ints. The program is
// loaded at the first call.
std::optional<std::vector<std::uint32_t>> read_index_table(StatIndexProgram& program,
                                                           const IndexTable& space, bool events) {
  if (!program) program.reset(stat_index_bpf__open_and_load());
  if (!program) return std::nullopt;
  hr_index_request request{.of_events = events, .bytes = *space.items * (events ? 4 : 1)};
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &request, .ctx_size_in = sizeof request);
  if (bpf_prog_test_run_opts(bpf_program__fd(program->progs.stat_index), &run) != 0)
    return std::nullopt;
  if (run.retval != 0) return std::nullopt;
  return decode_index_table({program->bss->table, request.bytes}, *space.items, *space.length);
}

StatIndices resolve(StatIndexProgram& program, const IndexTable& space, bool events,
                    bool use_tables, KernelFacts& facts) {
  if (!space.items || !space.length) return StatIndices::kUnknown;
  std::optional<std::vector<std::uint32_t>> positions;
  const bool plain = *space.items == *space.length;
  if (!plain && use_tables) positions = read_index_table(program, space, events);
  if (!plain && !positions) return StatIndices::kUnknown;
  for (std::size_t item = 0; item < HR_STATS; ++item) {
    if (!space.enumerators[item]) continue;
    const std::uint32_t at =
        plain ? *space.enumerators[item] : (*positions)[*space.enumerators[item]];
    if (at != HR_NO_INDEX) facts.index[item] = at | (events ? HR_IN_EVENTS : 0);
  }
  return plain ? StatIndices::kBtf : StatIndices::kTable;
}

// The enumerators themselves, for the kfuncs to translate.
void use_kfuncs(const Found& found, KernelFacts& facts) {
  facts.kfuncs |= HR_KFUNC_ITEMS;
  facts.state = facts.events = StatIndices::kKfunc;
  for (std::size_t item = 0; item < HR_STATS; ++item) {
    facts.index[item] = HR_NO_INDEX;
    if (found.state.enumerators[item]) facts.index[item] = *found.state.enumerators[item];
    if (found.events.enumerators[item])
      facts.index[item] = *found.events.enumerators[item] | HR_IN_EVENTS;
  }
}

}  // namespace

KernelFacts kernel_facts(bool use_tables, LogLine log) {
  const LibbpfLog quiet(std::move(log));
  KernelFacts facts;
  const auto types = kernel_types();
  if (!types) return facts;
  const Found found = scan_btf(types.get());
  facts.kfuncs = kfuncs_in(found.functions);
  facts.has_rstat_hook = found.has_rstat_hook;
  StatIndexProgram program;
  facts.state = resolve(program, found.state, false, use_tables, facts);
  facts.events = resolve(program, found.events, true, use_tables, facts);
  const bool hidden = facts.state == StatIndices::kUnknown || facts.events == StatIndices::kUnknown;
  if (hidden && (facts.kfuncs & HR_KFUNC_MEMCG)) use_kfuncs(found, facts);
  return facts;
}

}  // namespace headroom::observe
