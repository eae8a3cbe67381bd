// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/scrape_body.h"

#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/exposition/pod_families.h"

#include <algorithm>
#include <utility>

namespace headroom::report {
namespace {

constexpr std::size_t kRecordsPerChunk = 32;

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view extra_labels, double value) {
  out.append(name).append("{").append(labels);
  if (!extra_labels.empty()) out.append(",").append(extra_labels);
  out.append("} ");
  append_number(out, value);
  out.push_back('\n');
}

// With the uid: a terminating pod and its successor may have the same name.
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

ScrapeBody::ScrapeBody(ScrapeSetup setup) : setup_(std::move(setup)) {
  if (!setup_.cgroups) return;
  labels_.emplace(*setup_.cgroups, setup_.names);
  index_.emplace(*setup_.cgroups);
  waits_.emplace(*setup_.cgroups);
  select_families();
}

void ScrapeBody::select_families() {
  const auto wanted = [&](const CgroupFamily& family) {
    return family.is_cadvisor_metric() ? setup_.cadvisor_families : setup_.headroom_families;
  };
  for (const CgroupFamily& family : cgroup_families())
    if (wanted(family)) families_.push_back({family, family.name, family.help});
  for (const CgroupFamilyAlias& alias : setup_.aliases)
    for (const CgroupFamily& family : cgroup_families())
      if (family.name == alias.family && wanted(family))
        families_.push_back({family, alias.name, alias.help});
}

bool ScrapeBody::append_own(std::string& out) {
  if (next_own_ == setup_.own_families.size()) return false;
  append_family(out, setup_.format, setup_.own_families[next_own_++]);
  return true;
}

bool ScrapeBody::append_cgroups(std::string& out) {
  if (cgroup_family_ == families_.size()) return false;
  append_records(out);
  if (record_ < setup_.cgroups->records.size()) return true;
  const std::string_view current = families_[cgroup_family_++].name;
  record_ = 0;
  // Rows of one name that differ in their labels are one family.
  header_written_ &= cgroup_family_ < families_.size() && families_[cgroup_family_].name == current;
  return true;
}

// Appends some records of the current family.
void ScrapeBody::append_records(std::string& out) {
  const CgroupTable& table = *setup_.cgroups;
  const auto& [family, name, help] = families_[cgroup_family_];
  const std::size_t end = std::min(record_ + kRecordsPerChunk, table.records.size());
  for (; record_ < end; ++record_) {
    const std::string_view labels = labels_->of(record_);
    if (labels.empty()) continue;
    if ((family.groups & HR_PSI) && labels_->is_pod_internal(record_)) continue;
    const auto value = family.value({.record = table.records[record_],
                                     .started_ns = table.started_ns(record_),
                                     .read_at_ns = setup_.read_at_ns,
                                     .stalls = waits_->stalls(record_),
                                     .throttles = waits_->throttles(record_)});
    if (!value) continue;
    if (!header_written_) append_header(out, setup_.format, name, help, family.type);
    header_written_ = true;
    append_sample(out, name, labels, family.extra_labels, *value);
  }
}

bool ScrapeBody::append_pods(std::string& out) {
  if (!setup_.cgroups || !setup_.headroom_families || pod_family_ == pod_families().size())
    return false;
  const PodFamily& family = pod_families()[pod_family_++];
  bool header_written = false;
  for (const PodRow& row : setup_.cgroups->pods) {
    const PodMetricInput pod{
        .row = row, .record = index_->record_of(row.cgroup), .qos_of = setup_.qos_of};
    const auto value = family.read(pod);
    if (!value) continue;
    if (!header_written)
      append_header(out, setup_.format, family.name, family.help, prometheus::MetricType::Gauge);
    header_written = true;
    append_sample(out, family.name, labels_of(labels_->name_of(row), *row.pod),
                  family.extra_labels ? family.extra_labels(pod) : "", *value);
  }
  return true;
}

bool ScrapeBody::append_chunk(std::string& out) {
  if (append_own(out) || append_cgroups(out) || append_pods(out)) return true;
  if (std::exchange(ended_, true)) return false;
  out.append(exposition_end(setup_.format));
  return true;
}

}  // namespace headroom::report
