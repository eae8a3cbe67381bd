// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_wait_accounts.h"

#include "judge/waits/earlier_rows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

namespace headroom {
namespace {

// Of throttling, and of time without an idle CPU, that no wait was seen for yet, no more than this
// is kept: cpu.pressure is up to 2 s late.
constexpr Nanoseconds kMaxLeft = 2e9;
// A cgroup competes for CPUs if it ran or waited for this much of the window.
constexpr double kActive = 0.001;
// cpu.idle: the scheduler gives it the weight of SCHED_IDLE, 3 of 1024, where cpu.weight 100 is
// 1024.
constexpr double kIdleWeight = 0.3;

// The growth of a counter; 0 if either value is unknown, or if it went back.
Nanoseconds growth(std::uint64_t before, std::uint64_t now) {
  if (before == HR_UNKNOWN || now == HR_UNKNOWN || now <= before) return 0;
  return static_cast<Nanoseconds>(now - before);
}

std::uint64_t known(const hr_record& record, hr_u32 group, hr_u64 value) {
  return record.valid & group ? value : HR_UNKNOWN;
}

std::vector<std::optional<CpuWindow>> cpu_windows(std::span<const std::optional<CpuTime>> before,
                                                  std::span<const std::optional<CpuTime>> now) {
  std::vector<std::optional<CpuWindow>> windows(now.size());
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i)
    if (before[i] && now[i])
      windows[i] = CpuWindow{.idle = growth(before[i]->idle, now[i]->idle),
                             .interrupts = growth(before[i]->interrupts, now[i]->interrupts),
                             .tasks = growth(before[i]->tasks, now[i]->tasks)};
  return windows;
}

}  // namespace

struct CpuWaitAccounts::Window {
  Duration period{};
  Nanoseconds length = 0;
  CpuWindows cpus;
  Nanoseconds busy = 0;  // in which no CPU of the node was idle
};

// The waits of the cgroups of a pod that have no children, together.
struct CpuWaitAccounts::PodWindow {
  WindowWaits waits{};
  Nanoseconds waited = 0;

  Nanoseconds of(CpuWaitCause cause) const { return waits[static_cast<std::size_t>(cause)]; }
};

// To the pod's own sum: it waits while any of its cgroups does.
void CpuWaitAccounts::scale(Nanoseconds to, PodWindow& pod) {
  if (pod.waited <= 0) {
    pod.waits = {};
    pod.waits[static_cast<std::size_t>(CpuWaitCause::kUnknown)] = to;
  } else {
    for (Nanoseconds& each : pod.waits)
      each *= to / pod.waited;
  }
  pod.waited = to;
}

void CpuWaitAccounts::set_shares(Nanoseconds length) {
  const auto competes = [&](const Row& row) { return row.ran + row.waited > kActive * length; };
  for (const Row& row : rows_)
    if (row.parent != kNone && row.weight && competes(row))
      rows_[row.parent].active_weight += *row.weight;
  for (Row& row : rows_) {
    if (row.parent == kNone) {
      row.share = 1;
      continue;
    }
    const Row& parent = rows_[row.parent];
    if (!row.weight)
      row.share = parent.share;  // its tasks compete as those of the cgroup above
    else if (parent.share)
      row.share =
          *parent.share * *row.weight / (parent.active_weight + (competes(row) ? 0 : *row.weight));
  }
}

// Pods, and cgroups outside pods that have no children; the rest of the CPUs' time is the kernel's.
RunnersByShare CpuWaitAccounts::runners_on(std::span<const std::optional<CpuWindow>> cpus) const {
  std::vector<Runner> runners;
  Nanoseconds kernel = 0;
  for (const auto& cpu : cpus)
    if (cpu) kernel += cpu->tasks;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const bool is_outside = row.pod == kNone && !row.has_children && row.parent != kNone;
    if ((!row.is_pod && !is_outside) || row.ran <= 0) continue;
    kernel -= row.ran;
    runners.push_back({.group = i, .ran = row.ran, .share = row.share.value_or(0)});
  }
  return RunnersByShare(std::move(runners), kernel);
}

// Most sweeps list the cgroups of the one before, in the same order.
bool CpuWaitAccounts::is_same_tree(const CpuWaitSample& sample) const {
  return std::ranges::equal(
             rows_, sample.records, {}, [](const Row& row) { return row.id.value; },
             &hr_record::id) &&
         std::ranges::equal(pod_list_, sample.pods, {}, {},
                            [](const PodReading& pod) { return pod.cgroup.value; });
}

void CpuWaitAccounts::add_to_tree(const hr_record& record, bool is_pod) {
  Row row;
  row.id = CgroupId{record.id};
  if (const auto parent = row_of_.find(record.parent_id)) {
    row.parent = *parent;
    rows_[*parent].has_children = true;
    row.pod = rows_[*parent].pod;
  }
  row.is_pod = is_pod && row.pod == kNone;
  if (row.is_pod) {
    row.pod = pods_.size();
    pods_.push_back(rows_.size());
  }
  row_of_.put(record.id, rows_.size());
  rows_.push_back(row);
}

void CpuWaitAccounts::take_tree(const CpuWaitSample& sample) {
  std::vector<Totals> totals;
  totals.reserve(sample.records.size());
  for (const hr_record& record : sample.records)
    totals.push_back(last_totals_of(record.id));
  totals_ = std::move(totals);
  pod_list_.clear();
  for (const PodReading& pod : sample.pods)
    pod_list_.push_back(pod.cgroup.value);
  const IdTable pods = rows_of(pod_list_);
  rows_.clear();
  rows_.reserve(sample.records.size());
  pods_.clear();
  row_of_ = IdTable(sample.records.size());
  for (const hr_record& record : sample.records)
    add_to_tree(record, pods.find(record.id).has_value());
}

// Fills in what the row and the totals have of the window by themselves.
void CpuWaitAccounts::begin_window(const hr_record& record, const Totals& before,
                                   Nanoseconds length, Row& row, Totals& now) {
  const Nanoseconds waited = growth(before.waited, now.waited) + before.waited_left;
  row.waited = std::min(waited, length);
  now.waited_left = waited - row.waited;
  now.busy_left = before.busy_left;
  now.quota_left = before.quota_left;
  now.parent_quota_left = before.parent_quota_left;
  row.ran = growth(before.ran, now.ran);
  const ThrottleWindow throttle{.throttled = growth(before.throttled, now.throttled),
                                .queues_waited = growth(before.queues_waited, now.queues_waited),
                                .any_waited = growth(before.any_waited, now.any_waited),
                                .ran = row.ran};
  row.quota = time_at_quota(throttle, length);
  row.parent_quota = 0;
  row.weight.reset();
  if (record.valid & HR_CPU_LIMITS)
    row.weight = record.cpu_weight ? static_cast<double>(record.cpu_weight) : kIdleWeight;
  row.active_weight = 0;
  row.share.reset();
}

// As begin_window() for a record that is as it was, when nothing is left of the waits before.
void CpuWaitAccounts::begin_idle_window(Row& row) {
  row.waited = row.ran = row.quota = row.parent_quota = 0;
  row.active_weight = 0;
  row.share.reset();
}

// Its parent's row is complete already.
void CpuWaitAccounts::add_quota_above(Row& row) const {
  if (row.parent == kNone) return;
  const Row& above = rows_[row.parent];
  row.parent_quota = above.parent_quota + (row.is_pod ? above.quota : 0);
  if (!row.is_pod) row.quota += above.quota;
}

CpuWaitAccounts::Totals CpuWaitAccounts::last_totals_of(std::uint64_t cgroup) const {
  if (const auto earlier = row_of_.find(cgroup)) return totals_[*earlier];
  // A cgroup that was not there at the last window began with zeros.
  return last_ ? Totals{.waited = 0, .ran = 0, .throttled = 0} : Totals{};
}

void CpuWaitAccounts::read_rows(const CpuWaitSample& sample, Nanoseconds length) {
  const bool same_tree = is_same_tree(sample);
  if (!same_tree) take_tree(sample);
  const std::uint32_t last_pass = changes_.pass;
  const auto stamps = sample.changes.change_stamps;
  const bool knows_changes =
      same_tree && sample.changes.order == changes_.order && stamps.size() == rows_.size();
  changes_ = {.change_stamps = {}, .pass = sample.changes.pass, .order = sample.changes.order};
  const auto& throttles = sample.throttles;
  const bool any_throttled = throttles && !throttles->ids.empty();
  const IdTable throttle_rows =
      rows_of(any_throttled ? throttles->ids : std::span<const std::uint64_t>{});
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (knows_changes && !any_throttled && stamps[i].pass <= last_pass &&
        totals_[i].waited_left <= 0) {
      begin_idle_window(rows_[i]);
      add_quota_above(rows_[i]);
      continue;
    }
    const hr_record& record = sample.records[i];
    const Totals before = std::exchange(totals_[i], {});
    Totals& now = totals_[i];
    now.waited = known(record, HR_PSI, record.psi_ns[HR_PSI_CPU][HR_PSI_SOME]);
    now.ran = known(record, HR_CPU, record.cpu_usage_ns);
    // A slice that is made gets its CPU controller with the first cgroup in it: until then its
    // counter is what it was at first, 0.
    now.throttled = record.valid & HR_THROTTLE ? record.throttled_ns : before.throttled;
    if (const auto at = any_throttled ? throttle_rows.find(record.id) : std::nullopt) {
      now.queues_waited = throttles->values[*at].waits.ns;
      now.any_waited = throttles->values[*at].any_ns;
    }
    begin_window(record, before, length, rows_[i], now);
    add_quota_above(rows_[i]);
  }
}

// What the waits of the next window may belong to, because cpu.pressure is late.
void CpuWaitAccounts::carry_over(const WaitingGroup& group, const WindowWaits& waits,
                                 Nanoseconds busy, Totals& totals) {
  const auto of = [&](CpuWaitCause cause) { return waits[static_cast<std::size_t>(cause)]; };
  const auto left = [](Nanoseconds had, Nanoseconds used) {
    return std::clamp(had - used, 0.0, kMaxLeft);
  };
  const Nanoseconds at_quota = of(CpuWaitCause::kQuota) + of(CpuWaitCause::kParentQuota);
  totals.quota_left = left(group.quota, of(CpuWaitCause::kQuota));
  totals.parent_quota_left = left(group.parent_quota, of(CpuWaitCause::kParentQuota));
  totals.busy_left =
      left(busy + group.busy_before, group.waited - at_quota - of(CpuWaitCause::kPlacement));
}

CpuWaitAccounts::PodWindows CpuWaitAccounts::split(Window& window, const RunnersByShare& runners,
                                                   const CpusOf& cpus_of) {
  PodWindows pods(pods_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.pod == kNone || row.has_children) continue;
    Totals& totals = totals_[i];
    const CpuSet* cpus = row.waited > 0 ? cpus_of(row.id) : nullptr;
    const WaitingGroup group{.window = window.length,
                             .waited = row.waited,
                             .quota = row.quota + totals.quota_left,
                             .parent_quota = row.parent_quota + totals.parent_quota_left,
                             .busy_before = totals.busy_left,
                             .cpus = cpus ? &window.cpus.of(*cpus) : nullptr,
                             .share = row.share};
    if (row.waited <= 0) {
      carry_over(group, {}, window.busy, totals);
      continue;
    }
    const WindowWaits waits = attribute(group, runners);
    carry_over(group, waits, busy_time(group), totals);
    PodWindow& pod = pods[row.pod];
    pod.waited += row.waited;
    for (std::size_t cause = 0; cause < kCpuWaitCauses; ++cause)
      pod.waits[cause] += waits[cause];
  }
  return pods;
}

void CpuWaitAccounts::add_waits(const Window& window, PodWindows& pods) {
  const std::vector<std::uint64_t> ids_before = std::exchange(pod_ids_, {});
  const std::vector<CpuWaits> before = std::exchange(waits_, {});
  EarlierRows earlier_rows(ids_before);
  pod_ids_.reserve(pods.size());
  waits_.reserve(pods.size());
  Nanoseconds longest = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const Row& row = rows_[pods_[i]];
    if (totals_[pods_[i]].waited == HR_UNKNOWN) continue;
    PodWindow& pod = pods[i];
    const auto earlier = earlier_rows.find(row.id.value, waits_.size());
    CpuWaits& total = waits_.emplace_back(earlier ? before[*earlier] : CpuWaits{});
    pod_ids_.push_back(row.id.value);
    if (row.waited <= 0) {
      pod = {};
      continue;
    }
    scale(row.waited, pod);
    for (std::size_t cause = 0; cause < kCpuWaitCauses; ++cause)
      total.ns[cause] += static_cast<std::uint64_t>(std::llround(pod.waits[cause]));
    longest = std::max(longest, pod.of(CpuWaitCause::kNode) + pod.of(CpuWaitCause::kInterrupts));
  }
  contention_.reset();
  const auto cpus = window.cpus.each();
  const bool any_cpu =
      std::any_of(cpus.begin(), cpus.end(), [](const auto& cpu) { return cpu.has_value(); });
  if (any_cpu && (!pod_ids_.empty() || pods.empty()))
    contention_ = std::min(1.0, longest / window.length);
}

namespace {

// Whether the pod, or what is outside pods, can run on a CPU that the other one may use.
bool may_hold(CgroupId holder, CgroupId waiter, const CpuWaitAccounts::CpusOf& cpus_of) {
  if (holder.value == 0) return true;
  const CpuSet* of_holder = cpus_of(holder);
  const CpuSet* of_waiter = cpus_of(waiter);
  return !of_holder || !of_waiter || of_holder->intersects(*of_waiter);
}

}  // namespace

void CpuWaitAccounts::add_pairs(const Window& window, const PodWindows& pods,
                                const RunnersByShare& runners, const CpusOf& cpus_of) {
  std::vector<WaitPairs::Waiter> waiters;
  for (std::size_t i = 0; i < pods.size(); ++i)
    waiters.push_back({.pod = rows_[pods_[i]].id,
                       .waited = pods[i].of(CpuWaitCause::kNode) +
                                 pods[i].of(CpuWaitCause::kWeight) +
                                 pods[i].of(CpuWaitCause::kCpuset)});
  std::vector<WaitPairs::Holder> holders;
  Nanoseconds outside = runners.ran();
  for (const Runner& runner : runners.runners()) {
    if (!rows_[runner.group].is_pod) continue;
    holders.push_back({.pod = rows_[runner.group].id, .held = runner.ran});
    outside -= runner.ran;
  }
  holders.push_back({.pod = {}, .held = outside});
  pairs_.add(window.period, waiters, holders,
             [&](CgroupId holder, CgroupId waiter) { return may_hold(holder, waiter, cpus_of); });
  pairs_.drop_gone([&](CgroupId pod) { return row_of_.find(pod.value).has_value(); });
}

void CpuWaitAccounts::set_uses(const Window& window, const PodWindows& pods,
                               const RunnersByShare& runners, const CpusOf& cpus_of) {
  std::vector<CpuLoser> losers;
  for (std::size_t i = 0; i < pods.size(); ++i)
    losers.push_back({.pod = rows_[pods_[i]].id, .lost = pods[i].of(CpuWaitCause::kNode)});
  std::vector<CpuRunner> all;
  double outside = runners.ran();
  for (const std::size_t i : pods_) {
    const Row& row = rows_[i];
    if (totals_[i].ran == HR_UNKNOWN) continue;
    all.push_back({.pod = row.id, .ran = row.ran});
    outside -= row.ran;
  }
  all.push_back({.pod = {}, .ran = std::max(outside, 0.0)});
  uses_ = cpu_uses(window.period, std::move(losers), all, cpus_of);
}

void CpuWaitAccounts::update(const CpuWaitSample& sample, const CpusOf& cpus_of) {
  if (!is_due(sample.at)) return;
  Window window;
  window.period = last_ ? sample.at - *last_ : Duration::zero();
  window.length = static_cast<Nanoseconds>(window.period.count());
  read_rows(sample, window.length);
  window.cpus = CpuWindows(cpu_windows(last_cpus_, sample.cpus));
  last_cpus_.assign(sample.cpus.begin(), sample.cpus.end());
  const bool is_first = !std::exchange(last_, sample.at);
  if (is_first) return;
  Nanoseconds most_idle = 0;
  for (const auto& cpu : window.cpus.each())
    if (cpu) most_idle = std::max(most_idle, cpu->idle);
  window.busy = std::max(window.length - most_idle, 0.0);
  set_shares(window.length);
  const RunnersByShare runners = runners_on(window.cpus.each());
  PodWindows pods = split(window, runners, cpus_of);
  add_waits(window, pods);
  add_pairs(window, pods, runners, cpus_of);
  set_uses(window, pods, runners, cpus_of);
}

std::optional<ByCgroup<CpuWaits>> CpuWaitAccounts::totals() const {
  if (pod_ids_.empty()) return std::nullopt;
  return ByCgroup<CpuWaits>{.ids = pod_ids_, .values = waits_};
}

}  // namespace headroom
