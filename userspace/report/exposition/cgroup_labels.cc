// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/cgroup_labels.h"

#include "report/exposition/text.h"
#include "report/identity.h"

namespace headroom::report {
namespace {

void append_labels(std::string& out, std::string_view path, const PodRow* row) {
  const Container* container = row ? container_named(*row->pod, path) : nullptr;
  const auto add = [&](std::string_view name, std::string_view value) {
    append_label(out, name, value);
    out.push_back(',');
  };
  add("container", container ? std::string_view(container->name) : "");
  add("id", path);
  add("image", "");
  add("name", row ? runtime_id(path) : "");
  add("namespace", row ? std::string_view(row->pod->pod_namespace) : "");
  append_label(out, "pod", row ? std::string_view(row->pod->name) : "");
}

}  // namespace

CgroupLabels::CgroupLabels(const CgroupTable& table) {
  const PodIndex index(table);
  ends_.reserve(table.records.size());
  constexpr std::size_t kNames = 80;  // what the labels need beside the path
  text_.reserve(table.paths.size() + table.records.size() * kNames);
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const std::string_view path = table.path(i);
    if (!path.empty()) append_labels(text_, path, index.pod_of(table.records[i]));
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
}

}  // namespace headroom::report
