// SPDX-License-Identifier: Apache-2.0
#include "report/view/pod_index.h"

#include <algorithm>
#include <array>

namespace headroom::report {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

const Container* named(const std::vector<Container>& containers, std::string_view name) {
  const auto it = std::find_if(containers.begin(), containers.end(),
                               [&](const Container& container) { return container.name == name; });
  return it == containers.end() ? nullptr : &*it;
}

}  // namespace

std::string_view unit_stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // without a slash: npos + 1 is 0
  for (const std::string_view suffix : {".scope", ".service", ".slice"})
    if (path.ends_with(suffix)) {
      path.remove_suffix(suffix.size());
      break;
    }
  return path;
}

const Container* container_named(const Pod& pod, std::string_view path) {
  const std::string_view stem = unit_stem(path);
  const Container* found = named(pod.containers, stem);
  return found ? found : named(pod.init_containers, stem);
}

std::string_view runtime_id(std::string_view path) {
  constexpr std::size_t kIdLength = 64;
  std::string_view id = unit_stem(path);
  // The cgroup of a container's monitor has the container's id but is not the container (CRI-O,
  // podman).
  if (id.starts_with("crio-conmon-") || id.starts_with("libpod-conmon-")) return "";
  id.remove_prefix(id.rfind('-') + 1);
  return id.size() == kIdLength && std::all_of(id.begin(), id.end(), is_hex) ? id : "";
}

PodIndex::PodIndex(const CgroupTable& table)
    : table_(&table), records_(table.records.size()), pods_(table.pods.size()) {
  for (std::size_t i = 0; i < table.records.size(); ++i)
    records_.put(table.records[i].id, i);
  for (std::size_t i = 0; i < table.pods.size(); ++i)
    pods_.put(table.pods[i].cgroup.value, i);
}

const PodRow* PodIndex::pod_of(const hr_record& record) const {
  constexpr int kMaxDepth = 64;  // a table that mixes two instants could contain a cycle
  const hr_record* at = &record;
  for (int depth = 0; at && depth < kMaxDepth; ++depth) {
    if (const auto pod = pods_.find(at->id)) return &table_->pods[*pod];
    at = record_of(CgroupId{at->parent_id});
  }
  return nullptr;
}

const hr_record* PodIndex::record_of(CgroupId id) const {
  const auto row = records_.find(id.value);
  return row ? &table_->records[*row] : nullptr;
}

}  // namespace headroom::report
