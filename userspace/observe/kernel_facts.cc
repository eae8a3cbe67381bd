// SPDX-License-Identifier: Apache-2.0
#include "observe/kernel_facts.h"

#include "stat_index.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <array>
#include <memory>
#include <optional>

namespace headroom::observe {
namespace {

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};
struct DestroyStatIndex {
  void operator()(stat_index_bpf* program) const { stat_index_bpf__destroy(program); }
};

// The table's order is known for the five LRU lists alone.
constexpr std::array<std::string_view, HR_STAT_ITEMS> kItems{
    "NR_INACTIVE_ANON", "NR_ACTIVE_ANON", "NR_INACTIVE_FILE", "NR_ACTIVE_FILE",
    "NR_UNEVICTABLE",   "NR_ANON_MAPPED", "NR_FILE_PAGES",    "NR_SHMEM"};

// What one walk over the kernel's types finds: there are more than 100,000 of them.
struct Found {
  std::uint32_t functions = 0;  // a bit for each of kFunctions
  std::array<std::optional<std::uint32_t>, HR_STAT_ITEMS> items;
  std::optional<std::uint32_t> stat_items;    // MEMCG_NR_STAT
  std::optional<std::uint32_t> state_length;  // of memcg_vmstats.state[]
};

struct Function {
  std::string_view name;
  std::uint32_t kfunc;  // what it is part of
};
constexpr std::array<Function, 7> kFunctions{{
    {"bpf_rdonly_cast", HR_KFUNC_RDONLY_CAST},
    {"cgroup_rstat_flush", HR_KFUNC_CGROUP_FLUSH},
    {"css_rstat_flush", HR_KFUNC_CSS_FLUSH},
    {"bpf_get_mem_cgroup", HR_KFUNC_MEMCG},
    {"bpf_put_mem_cgroup", HR_KFUNC_MEMCG},
    {"bpf_mem_cgroup_page_state", HR_KFUNC_MEMCG},
    {"bpf_mem_cgroup_flush_stats", HR_KFUNC_MEMCG},
}};

void note_enumerators(const btf* types, const btf_type* type, Found& found) {
  const struct btf_enum* values = ::btf_enum(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const std::string_view value_name = btf__name_by_offset(types, values[i].name_off);
    const auto value = static_cast<std::uint32_t>(values[i].val);
    if (value_name == "MEMCG_NR_STAT") found.stat_items = value;
    for (std::size_t item = 0; item < kItems.size(); ++item)
      if (value_name == kItems[item]) found.items[item] = value;
  }
}

void note_state_length(const btf* types, const btf_type* type, Found& found) {
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    if (btf__name_by_offset(types, members[i].name_off) != std::string_view("state")) continue;
    const btf_type* member = btf__type_by_id(types, members[i].type);
    if (member && btf_is_array(member)) found.state_length = btf_array(member)->nelems;
  }
}

Found walk(const btf* types) {
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
    } else if (kind == BTF_KIND_ENUM) {
      if (type_name == "node_stat_item" || type_name == "memcg_stat_item")
        note_enumerators(types, type, found);
    } else if (type_name == "memcg_vmstats") {
      note_state_length(types, type, found);
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

bool ask_table(const Found& found, KernelFacts& facts) {
  hr_stat_index table{};
  for (std::size_t i = 0; i < kItems.size(); ++i)
    table.items[i] = *found.items[i];
  std::unique_ptr<stat_index_bpf, DestroyStatIndex> program(stat_index_bpf__open_and_load());
  if (!program) return false;
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &table, .ctx_size_in = sizeof table);
  if (bpf_prog_test_run_opts(bpf_program__fd(program->progs.stat_index), &run) != 0) return false;
  return run.retval == 0 && indices_from_table(table, facts);
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

bool indices_from_table(const hr_stat_index& table, KernelFacts& facts) {
  // Counted from 1 in 6.11 (0: not kept), from 0 with 255 for "not kept" since.
  const hr_u32 base = table.entries[0];
  if (base > 1) return false;
  for (hr_u32 i = 0; i < 5; ++i)
    if (table.entries[i] != base + i) return false;
  // None of the three is an LRU list, and the array is far shorter than 128 (54 on 7.2).
  for (std::size_t i = 5; i < HR_STAT_ITEMS; ++i)
    if (table.entries[i] < base + 5 || table.entries[i] > 127) return false;
  facts.anon_index = table.entries[5] - base;
  facts.file_index = table.entries[6] - base;
  facts.shmem_index = table.entries[7] - base;
  return true;
}

KernelFacts kernel_facts(bool use_table) {
  KernelFacts facts;
  btf* loaded = btf__load_vmlinux_btf();
  if (libbpf_get_error(loaded)) return facts;
  const std::unique_ptr<btf, FreeBtf> types(loaded);
  const Found found = walk(types.get());
  facts.kfuncs = kfuncs_in(found.functions);
  if (facts.kfuncs & HR_KFUNC_MEMCG) facts.indices = StatIndices::kKfunc;
  for (const auto& item : found.items)
    if (!item) return facts;
  if (!found.stat_items || !found.state_length) return facts;
  if (*found.stat_items == *found.state_length) {
    facts.anon_index = *found.items[5];
    facts.file_index = *found.items[6];
    facts.shmem_index = *found.items[7];
    facts.indices = StatIndices::kBtf;
  } else if (use_table && ask_table(found, facts)) {
    facts.indices = StatIndices::kTable;
  }
  return facts;
}

}  // namespace headroom::observe
