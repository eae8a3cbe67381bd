// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/scrape_body.h"

#include "report/metrics/exposition/exposition_text.h"
#include "report/view/pod_index.h"

#include <headroom/snapshot.h>

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace headroom::report {

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

namespace {

constexpr std::size_t kSeriesPerChunk = 32;

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view extra_labels, double value) {
  out.append(name).append("{").append(labels);
  if (!extra_labels.empty()) out.append(",").append(extra_labels);
  out.append("} ");
  append_number(out, value);
  out.push_back('\n');
}

}  // namespace

ScrapeBody::ScrapeBody(ScrapeSetup setup) : setup_(std::move(setup)) {
  if (!setup_.cgroups) return;
  index_.emplace(*setup_.cgroups);
  labels_.emplace(*setup_.cgroups, *index_, setup_.names);
  waits_.emplace(*setup_.cgroups);
  cpu_waits_ = cpu_waits_by_pod(*setup_.cgroups);
  select_families();
  select_series();
  if (setup_.host && setup_.cadvisor_families)
    host_samples_.emplace(
        *setup_.cgroups, *setup_.host, setup_.observations,
        HostSelection{
            .is_wanted = [this](HostSource source) { return is_wanted(source); },
            // As in cAdvisor, whose counters of a pod's network are its pause container's.
            .is_pod_internal =
                [this](std::size_t record) { return labels_->is_pod_internal(record); },
            .has_series =
                [this](std::size_t record) { return labels_->is_in(setup_.scope, record); }});
}

bool ScrapeBody::is_excluded(std::string_view family) const {
  return matches_any(std::string(family), setup_.exclude);
}

bool ScrapeBody::is_wanted(HostSource source) const {
  return std::ranges::any_of(host_families(), [&](const HostFamily& family) {
    return family.source == source && !is_excluded(family.name);
  });
}

void ScrapeBody::select_families() {
  const auto wanted = [&](const CgroupFamily& family, std::string_view name) {
    if (is_excluded(name)) return false;
    return family.is_cadvisor_metric() ? setup_.cadvisor_families : setup_.headroom_families;
  };
  for (const CgroupFamily& family : cgroup_families())
    if (wanted(family, family.name)) families_.push_back({family, family.name, family.help});
  for (const CgroupFamilyAlias& alias : setup_.aliases)
    for (const CgroupFamily& family : cgroup_families())
      if (family.name == alias.family && wanted(family, alias.name))
        families_.push_back({family, alias.name, alias.help});
}

void ScrapeBody::select_series() {
  const auto add = [&](FamilyOf of, std::size_t record, std::string_view labels) {
    series_[static_cast<std::size_t>(of)].push_back({record, labels});
  };
  const CgroupTable& table = *setup_.cgroups;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const std::string_view labels = labels_->of(i);
    if (labels.empty()) continue;
    if (labels_->is_in(setup_.scope, i)) add(FamilyOf::kCgroups, i, labels);
    const PodRow* const row = index_->pod_of(table.records[i]);
    if (row && row->cgroup.value == table.records[i].id)
      add(FamilyOf::kPods, i, labels_->of_pod(static_cast<std::size_t>(row - table.pods.data())));
    const std::string_view node_labels = labels_->of_node(i);
    if (!node_labels.empty()) add(FamilyOf::kNode, i, node_labels);
  }
}

bool ScrapeBody::append_own(std::string& out) {
  if (next_own_ == setup_.own_families.size()) return false;
  append_family(out, setup_.format, setup_.own_families[next_own_++]);
  return true;
}

bool ScrapeBody::append_cgroups(std::string& out) {
  if (cgroup_family_ == families_.size()) return false;
  if (append_series(out)) return true;
  const std::string_view current = families_[cgroup_family_++].name;
  next_series_ = 0;
  // Rows of one name that differ in their labels are one family.
  header_written_ &= cgroup_family_ < families_.size() && families_[cgroup_family_].name == current;
  return true;
}

bool ScrapeBody::append_series(std::string& out) {
  const CgroupTable& table = *setup_.cgroups;
  const auto& [family, name, help] = families_[cgroup_family_];
  const auto& all = series_[static_cast<std::size_t>(family.of)];
  const bool is_pressure = (family.groups & HR_PSI) && family.of == FamilyOf::kCgroups;
  const std::size_t end = std::min(next_series_ + kSeriesPerChunk, all.size());
  for (; next_series_ < end; ++next_series_) {
    const auto& [record, labels] = all[next_series_];
    if (is_pressure && labels_->is_pod_internal(record)) continue;
    const auto value = family.value({.record = table.records[record],
                                     .started_ns = table.started_ns(record),
                                     .read_at_ns = setup_.read_at_ns,
                                     .stalls = waits_->stalls(record),
                                     .throttles = waits_->throttles(record)});
    if (!value) continue;
    if (!header_written_) append_header(out, setup_.format, name, help, family.type);
    header_written_ = true;
    append_sample(out, name, labels, family.extra_labels, *value);
  }
  return end < all.size();
}

bool ScrapeBody::append_host(std::string& out) {
  if (!host_samples_ || host_family_ == host_families().size()) return false;
  const HostFamily& family = host_families()[host_family_++];
  if (is_excluded(family.name)) return true;
  bool has_header = false;
  for (const HostSample& sample : host_samples_->of(family.source)) {
    const auto& value = sample.values[family.value];
    const std::string_view labels = labels_->of(sample.record);
    if (!value || labels.empty()) continue;
    if (!std::exchange(has_header, true))
      append_header(out, setup_.format, family.name, family.help, family.type);
    append_sample(out, family.name, labels, sample.extra_labels, *value);
  }
  return true;
}

bool ScrapeBody::append_pods(std::string& out) {
  if (!setup_.cgroups || !setup_.headroom_families || pod_family_ == pod_families().size())
    return false;
  const PodFamily& family = pod_families()[pod_family_];
  const bool continues = pod_family_ > 0 && pod_families()[pod_family_ - 1].name == family.name;
  header_written_ = header_written_ && continues;
  ++pod_family_;
  if (is_excluded(family.name)) return true;
  const auto& pods = setup_.cgroups->pods;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const PodRow& row = pods[i];
    const auto waits = cpu_waits_.find(row.cgroup.value);
    const PodMetricInput pod{.row = row,
                             .record = index_->record_of(row.cgroup),
                             .qos_of = setup_.qos_of,
                             .cpu_waits = waits == cpu_waits_.end() ? nullptr : waits->second};
    const auto value = family.read(pod);
    if (!value) continue;
    if (!header_written_) append_header(out, setup_.format, family.name, family.help, family.type);
    header_written_ = true;
    append_sample(out, family.name, labels_->of_pod(i),
                  family.extra_labels ? family.extra_labels(pod) : "", *value);
  }
  return true;
}

bool ScrapeBody::append_chunk(std::string& out) {
  if (append_own(out) || append_cgroups(out) || append_host(out) || append_pods(out)) return true;
  if (std::exchange(ended_, true)) return false;
  out.append(exposition_end(setup_.format));
  return true;
}

}  // namespace headroom::report
