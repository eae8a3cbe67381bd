// SPDX-License-Identifier: Apache-2.0
#include "observe/vmstat_layout.h"

#include <headroom/abi.h>

#include <bpf/btf.h>

#include <optional>
#include <string_view>

namespace headroom::observe {
namespace {

std::optional<std::uint32_t> enumerator(const btf* kernel, const char* type_name,
                                        std::string_view name) {
  int id = btf__find_by_name_kind(kernel, type_name, BTF_KIND_ENUM);
  if (id < 0) return std::nullopt;
  const btf_type* type = btf__type_by_id(kernel, static_cast<__u32>(id));
  const struct btf_enum* values = ::btf_enum(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i)
    if (btf__name_by_offset(kernel, values[i].name_off) == name)
      return static_cast<std::uint32_t>(values[i].val);
  return std::nullopt;
}

std::optional<std::uint32_t> array_length(const btf* kernel, const char* type_name,
                                          std::string_view member_name) {
  int id = btf__find_by_name_kind(kernel, type_name, BTF_KIND_STRUCT);
  if (id < 0) return std::nullopt;
  const btf_type* type = btf__type_by_id(kernel, static_cast<__u32>(id));
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    if (btf__name_by_offset(kernel, members[i].name_off) != member_name) continue;
    const btf_type* member = btf__type_by_id(kernel, members[i].type);
    if (!member || !btf_is_array(member)) return std::nullopt;
    return btf_array(member)->nelems;
  }
  return std::nullopt;
}

}  // namespace

VmstatLayout vmstat_layout(const btf* kernel) {
  VmstatLayout unknown{HR_NO_INDEX, HR_NO_INDEX, HR_NO_INDEX, false};
  if (!kernel) return unknown;
  auto items = enumerator(kernel, "memcg_stat_item", "MEMCG_NR_STAT");
  auto length = array_length(kernel, "memcg_vmstats", "state");
  if (!items || !length) return unknown;
  if (*items != *length) {
    unknown.compacted = true;
    return unknown;
  }
  auto anon = enumerator(kernel, "node_stat_item", "NR_ANON_MAPPED");
  auto file = enumerator(kernel, "node_stat_item", "NR_FILE_PAGES");
  auto shmem = enumerator(kernel, "node_stat_item", "NR_SHMEM");
  if (!anon || !file || !shmem) return unknown;
  return {*anon, *file, *shmem, false};
}

}  // namespace headroom::observe
