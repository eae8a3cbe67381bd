// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/cpu_wait_accounts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t kNone = SIZE_MAX;
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

// A cgroup, in the order of the sweep: parents before their children.
struct CpuWaitAccounts::Row {
  CgroupId id;
  std::size_t parent = kNone;  // its row; kNone: the root
  std::size_t pod = kNone;     // in Window::pods: the one that it is in, or is
  bool is_pod = false;         // the pod's own cgroup
  bool has_children = false;
  Totals* totals = nullptr;
  Nanoseconds waited = 0, ran = 0;
  Nanoseconds quota = 0;         // at its own quota and those above it in its pod
  Nanoseconds parent_quota = 0;  // above its pod
  std::optional<double> weight;  // absent: it has none of its own
  double active_weight = 0;      // of its children that compete
  std::optional<double> share;
};

struct CpuWaitAccounts::Window {
  Duration period{};
  Nanoseconds length = 0;
  std::vector<Row> rows;
  std::vector<std::size_t> pods;  // their rows
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

namespace {

template <class Row>
void set_shares(std::vector<Row>& rows, Nanoseconds length) {
  const auto competes = [&](const Row& row) { return row.ran + row.waited > kActive * length; };
  for (Row& row : rows)
    if (row.parent != kNone && row.weight && competes(row))
      rows[row.parent].active_weight += *row.weight;
  for (Row& row : rows) {
    if (row.parent == kNone) {
      row.share = 1;
      continue;
    }
    const Row& parent = rows[row.parent];
    if (!row.weight)
      row.share = parent.share;  // its tasks compete as those of the cgroup above
    else if (parent.share)
      row.share =
          *parent.share * *row.weight / (parent.active_weight + (competes(row) ? 0 : *row.weight));
  }
}

// Pods, and cgroups outside pods that have no children; the rest of the CPUs' time is the kernel's.
template <class Row>
RunnersByShare runners_of(const std::vector<Row>& rows,
                          std::span<const std::optional<CpuWindow>> cpus) {
  std::vector<Runner> runners;
  Nanoseconds kernel = 0;
  for (const auto& cpu : cpus)
    if (cpu) kernel += cpu->tasks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool is_outside = row.pod == kNone && !row.has_children && row.parent != kNone;
    if ((!row.is_pod && !is_outside) || row.ran <= 0) continue;
    kernel -= row.ran;
    runners.push_back({.group = i, .ran = row.ran, .share = row.share.value_or(0)});
  }
  return RunnersByShare(std::move(runners), kernel);
}

// Appends the row, with what it has from the cgroups above it.
template <class Window, class Row>
void add_to_tree(Row row, std::size_t parent, bool is_pod, Window& window) {
  row.parent = parent;
  if (parent != kNone) {
    Row& above = window.rows[parent];
    above.has_children = true;
    row.pod = above.pod;
    const bool begins_pod = is_pod && row.pod == kNone;
    row.parent_quota = above.parent_quota + (begins_pod ? above.quota : 0);
    if (!begins_pod) row.quota += above.quota;
  }
  row.is_pod = is_pod && row.pod == kNone;
  if (row.is_pod) {
    row.pod = window.pods.size();
    window.pods.push_back(window.rows.size());
  }
  window.rows.push_back(std::move(row));
}

IdTable rows_of(std::span<const std::uint64_t> ids) {
  IdTable rows(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    rows.put(ids[i], i);
  return rows;
}

}  // namespace

CpuWaitAccounts::Row CpuWaitAccounts::next_row(const hr_record& record, Totals& now,
                                               const Totals& before, Nanoseconds length) {
  Row row;
  row.id = CgroupId{record.id};
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
  if (record.valid & HR_CPU_LIMITS)
    row.weight = record.cpu_weight ? static_cast<double>(record.cpu_weight) : kIdleWeight;
  return row;
}

// Sweeps list the cgroups in the same order, until one is made or removed.
CpuWaitAccounts::Totals CpuWaitAccounts::last_totals_of(std::uint64_t cgroup,
                                                        std::size_t row) const {
  if (row < last_ids_.size() && last_ids_[row] == cgroup) return last_totals_[row];
  if (const auto earlier = last_rows_.find(cgroup)) return last_totals_[*earlier];
  // A cgroup that was not there at the last window began with zeros.
  return last_ ? Totals{.waited = 0, .ran = 0, .throttled = 0} : Totals{};
}

void CpuWaitAccounts::read_rows(const CpuWaitSample& sample, Window& window) {
  const auto& throttles = sample.throttles;
  const IdTable throttle_rows =
      rows_of(throttles ? throttles->ids : std::span<const std::uint64_t>{});
  IdTable pods(sample.pods.size());
  for (std::size_t i = 0; i < sample.pods.size(); ++i)
    pods.put(sample.pods[i].cgroup.value, i);
  const std::size_t count = sample.records.size();
  IdTable rows(count);
  std::vector<std::uint64_t> ids;
  ids.reserve(count);
  std::vector<Totals> totals(count);
  window.rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const hr_record& record = sample.records[i];
    Totals& now = totals[i];
    now.waited = known(record, HR_PSI, record.psi_ns[HR_PSI_CPU][HR_PSI_SOME]);
    now.ran = known(record, HR_CPU, record.cpu_usage_ns);
    const Totals before = last_totals_of(record.id, i);
    // A slice that is made gets its CPU controller with the first cgroup in it: until then its
    // counter is what it was at first, 0.
    now.throttled = record.valid & HR_THROTTLE ? record.throttled_ns : before.throttled;
    if (const auto at = throttle_rows.find(record.id)) {
      now.queues_waited = throttles->values[*at].waits.ns;
      now.any_waited = throttles->values[*at].any_ns;
    }
    Row row = next_row(record, now, before, window.length);
    row.totals = &now;
    add_to_tree(std::move(row), rows.find(record.parent_id).value_or(kNone),
                pods.find(record.id).has_value(), window);
    rows.put(record.id, i);
    ids.push_back(record.id);
  }
  last_ids_ = std::move(ids);
  last_rows_ = std::move(rows);
  last_totals_ = std::move(totals);  // they keep their addresses
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
  PodWindows pods(window.pods.size());
  for (const Row& row : window.rows) {
    if (row.pod == kNone || row.has_children) continue;
    Totals& totals = *row.totals;
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
    for (std::size_t i = 0; i < kCpuWaitCauses; ++i)
      pod.waits[i] += waits[i];
  }
  return pods;
}

void CpuWaitAccounts::add_waits(const Window& window, PodWindows& pods) {
  const IdTable known = rows_of(pod_ids_);
  pod_ids_.clear();
  const std::vector<CpuWaits> before = std::exchange(waits_, {});
  waits_.reserve(pods.size());
  Nanoseconds longest = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const Row& row = window.rows[window.pods[i]];
    if (row.totals->waited == HR_UNKNOWN) continue;
    PodWindow& pod = pods[i];
    scale(row.waited, pod);
    const auto earlier = known.find(row.id.value);
    CpuWaits& total = waits_.emplace_back(earlier ? before[*earlier] : CpuWaits{});
    pod_ids_.push_back(row.id.value);
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
    waiters.push_back({.pod = window.rows[window.pods[i]].id,
                       .waited = pods[i].of(CpuWaitCause::kNode) +
                                 pods[i].of(CpuWaitCause::kWeight) +
                                 pods[i].of(CpuWaitCause::kCpuset)});
  std::vector<WaitPairs::Holder> holders;
  Nanoseconds outside = runners.ran();
  for (const Runner& runner : runners.runners()) {
    if (!window.rows[runner.group].is_pod) continue;
    holders.push_back({.pod = window.rows[runner.group].id, .held = runner.ran});
    outside -= runner.ran;
  }
  holders.push_back({.pod = {}, .held = outside});
  pairs_.add(window.period, waiters, holders,
             [&](CgroupId holder, CgroupId waiter) { return may_hold(holder, waiter, cpus_of); });
  pairs_.drop_gone([&](CgroupId pod) { return last_rows_.find(pod.value).has_value(); });
}

void CpuWaitAccounts::set_uses(const Window& window, const PodWindows& pods,
                               const RunnersByShare& runners, const CpusOf& cpus_of) {
  std::vector<CpuLoser> losers;
  for (std::size_t i = 0; i < pods.size(); ++i)
    losers.push_back(
        {.pod = window.rows[window.pods[i]].id, .lost = pods[i].of(CpuWaitCause::kNode)});
  std::vector<CpuRunner> all;
  double outside = runners.ran();
  for (const std::size_t i : window.pods) {
    const Row& row = window.rows[i];
    if (row.totals->ran == HR_UNKNOWN) continue;
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
  read_rows(sample, window);
  window.cpus = CpuWindows(cpu_windows(last_cpus_, sample.cpus));
  last_cpus_.assign(sample.cpus.begin(), sample.cpus.end());
  const bool is_first = !std::exchange(last_, sample.at);
  if (is_first) return;
  Nanoseconds most_idle = 0;
  for (const auto& cpu : window.cpus.each())
    if (cpu) most_idle = std::max(most_idle, cpu->idle);
  window.busy = std::max(window.length - most_idle, 0.0);
  set_shares(window.rows, window.length);
  const RunnersByShare runners = runners_of(window.rows, window.cpus.each());
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
