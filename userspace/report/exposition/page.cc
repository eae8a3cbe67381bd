// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/page.h"

#include "report/exposition/cgroup_families.h"
#include "report/exposition/pod_families.h"
#include "report/exposition/text.h"

#include <algorithm>
#include <utility>

namespace headroom::report {
namespace {

constexpr std::size_t kRecordsAPiece = 32;

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view more, double value) {
  out.append(name).append("{").append(labels);
  if (!more.empty()) out.append(",").append(more);
  out.append("} ");
  append_number(out, value);
  out.push_back('\n');
}

// With the uid: a pod on its way out and its successor have the same name.
std::string labels_of(CgroupLabels::PodName name, const Pod& pod) {
  std::string labels;
  append_label(labels, "namespace", name.pod_namespace);
  labels.push_back(',');
  append_label(labels, "pod", name.name);
  labels.push_back(',');
  append_label(labels, "uid", pod.uid);
  return labels;
}

}  // namespace

Page::Page(PageSetup setup) : setup_(std::move(setup)) {
  if (!setup_.cgroups) return;
  labels_.emplace(*setup_.cgroups, setup_.names);
  index_.emplace(*setup_.cgroups);
  waits_.emplace(*setup_.cgroups);
}

bool Page::wanted(std::size_t family) const {
  return cgroup_families()[family].is_cadvisors() ? setup_.cadvisors : setup_.ours;
}

bool Page::append_own(std::string& out) {
  if (own_ == setup_.own.size()) return false;
  append_family(out, setup_.format, setup_.own[own_++]);
  return true;
}

bool Page::append_cgroups(std::string& out) {
  while (cgroup_family_ < cgroup_families().size() && !wanted(cgroup_family_))
    ++cgroup_family_;
  if (!setup_.cgroups || cgroup_family_ == cgroup_families().size()) return false;
  append_records(out);
  if (record_ < setup_.cgroups->records.size()) return true;
  const std::string_view shown = cgroup_families()[cgroup_family_++].name;
  record_ = 0;
  // Rows of one name that differ in their labels are one family.
  headed_ &=
      cgroup_family_ < cgroup_families().size() && cgroup_families()[cgroup_family_].name == shown;
  return true;
}

// Some records of the present family.
void Page::append_records(std::string& out) {
  const CgroupTable& table = *setup_.cgroups;
  const CgroupFamily& family = cgroup_families()[cgroup_family_];
  const std::size_t end = std::min(record_ + kRecordsAPiece, table.records.size());
  for (; record_ < end; ++record_) {
    const std::string_view labels = labels_->of(record_);
    if (labels.empty()) continue;
    if ((family.groups & HR_PSI) && labels_->within_a_pod(record_)) continue;
    const auto value = family.value({.record = table.records[record_],
                                     .started_ns = table.started_ns(record_),
                                     .read_at_ns = setup_.read_at_ns,
                                     .stalls = waits_->stalls(record_),
                                     .throttles = waits_->throttles(record_)});
    if (!value) continue;
    if (!headed_) append_header(out, setup_.format, family.name, family.help, family.type);
    headed_ = true;
    append_sample(out, family.name, labels, family.more, *value);
  }
}

bool Page::append_pods(std::string& out) {
  if (!setup_.cgroups || !setup_.ours || pod_family_ == pod_families().size()) return false;
  const PodFamily& family = pod_families()[pod_family_++];
  bool headed = false;
  for (const PodRow& row : setup_.cgroups->pods) {
    const PodView pod{.row = row, .record = index_->record_of(row.cgroup), .qos_of = setup_.qos_of};
    const auto value = family.read(pod);
    if (!value) continue;
    if (!headed)
      append_header(out, setup_.format, family.name, family.help, prometheus::MetricType::Gauge);
    headed = true;
    append_sample(out, family.name, labels_of(labels_->name_of(row), *row.pod),
                  family.more ? family.more(pod) : "", *value);
  }
  return true;
}

bool Page::append_piece(std::string& out) {
  if (append_own(out) || append_cgroups(out) || append_pods(out)) return true;
  if (std::exchange(ended_, true)) return false;
  out.append(page_end(setup_.format));
  return true;
}

}  // namespace headroom::report
