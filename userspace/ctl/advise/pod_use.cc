// SPDX-License-Identifier: Apache-2.0
#include "ctl/advise/pod_use.h"

#include "judge/resources/pod_resources.h"
#include "judge/waits/cpu_waits.h"

#include <headroom/snapshot.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace headroom::ctl {
namespace {

std::uint64_t growth(hr_u64 before, hr_u64 now) {
  return before == HR_UNKNOWN || now == HR_UNKNOWN || now < before ? 0 : now - before;
}

bool both_have(const hr_record& a, const hr_record& b, hr_u32 group) {
  return (a.valid & b.valid & group) != 0;
}

// A pod while the recording is read.
struct Reading {
  RecordedPod recorded;
  hr_record last{};
  Instant last_at;
  bool any = false;
};

void add_throttling(const hr_record& before, const hr_record& now, Duration length, PodUse& use) {
  if (!both_have(before, now, HR_THROTTLE)) return;
  use.periods += growth(before.nr_periods, now.nr_periods);
  const std::uint64_t throttled = growth(before.nr_throttled, now.nr_throttled);
  use.throttled_periods += throttled;
  const auto ran =
      both_have(before, now, HR_CPU) ? growth(before.cpu_usage_ns, now.cpu_usage_ns) : 0;
  const ThrottleWindow window{
      .throttled = static_cast<double>(growth(before.throttled_ns, now.throttled_ns)),
      .ran = static_cast<double>(ran)};
  use.at_quota += Duration(
      static_cast<Duration::rep>(time_at_quota(window, static_cast<double>(length.count()))));
}

void add_sample(const hr_record& now, Instant at, Reading& reading) {
  const hr_record before = std::exchange(reading.last, now);
  const Instant before_at = std::exchange(reading.last_at, at);
  if (!std::exchange(reading.any, true) || at <= before_at) return;
  PodUse& use = reading.recorded.use;
  PodUseSample sample{.length = at - before_at, .working_set = {}, .cpus = {}};
  if (const auto held = working_set(now)) sample.working_set = held->count;
  if (both_have(before, now, HR_CPU))
    sample.cpus = static_cast<double>(growth(before.cpu_usage_ns, now.cpu_usage_ns)) /
                  static_cast<double>(sample.length.count());
  use.samples.push_back(sample);
  add_throttling(before, now, sample.length, use);
  if (both_have(before, now, HR_MEMORY_EVENTS)) {
    use.limit_hits += growth(before.events_max, now.events_max);
    use.oom_kills += growth(before.events_oom_kill, now.events_oom_kill);
  }
}

std::optional<double> cpus_of(const ResourceList& list) {
  const auto found = list.find("cpu");
  if (found == list.end() || found->second.milli_value() <= 0) return std::nullopt;
  return static_cast<double>(found->second.milli_value()) / 1000;
}

// What applies now: requests of the manifest, limits of the cgroup.
void set_present_values(Reading& reading) {
  PodUse& use = reading.recorded.use;
  const hr_record& record = reading.last;
  const ResourceList requests = pod_requests(*reading.recorded.pod);
  use.cpu_request = cpus_of(requests);
  if (const auto memory = requests.find("memory");
      memory != requests.end() && memory->second.value() > 0)
    use.memory_request = memory->second.value();
  if ((record.valid & HR_MEMORY_LIMITS) && record.memory_max < HR_NO_LIMIT)
    use.memory_limit = static_cast<std::int64_t>(record.memory_max);
  if ((record.valid & HR_CPU_LIMITS) && record.cpu_quota_us < HR_NO_LIMIT &&
      record.cpu_period_us > 0)
    use.cpu_quota =
        static_cast<double>(record.cpu_quota_us) / static_cast<double>(record.cpu_period_us);
}

class UseReader {
 public:
  void add(const recording::Turn& turn) {
    if (turn.snapshot.cgroups)
      for (const PodReading& pod : turn.snapshot.pods) {
        if (!pod.record) continue;
        Reading& reading = readings_[pod.cgroup];
        reading.recorded.pod = pod.pod;
        add_sample(*pod.record, turn.snapshot.at, reading);
      }
    for (const Decision& decision : turn.decisions) {
      const bool ends = decision.act == Act::kKill || decision.act == Act::kTerminate;
      const auto found = readings_.find(decision.cgroup);
      if (ends && found != readings_.end()) ++found->second.recorded.use.evictions;
    }
  }
  std::vector<RecordedPod> take() {
    std::vector<RecordedPod> pods;
    for (auto& [cgroup, reading] : readings_) {
      set_present_values(reading);
      pods.push_back(std::move(reading.recorded));
    }
    std::sort(pods.begin(), pods.end(), [](const RecordedPod& a, const RecordedPod& b) {
      return std::tie(a.pod->pod_namespace, a.pod->name, a.pod->uid) <
             std::tie(b.pod->pod_namespace, b.pod->name, b.pod->uid);
    });
    return pods;
  }

 private:
  std::unordered_map<CgroupId, Reading> readings_;
};

}  // namespace

Result<std::vector<RecordedPod>> read_pod_use(recording::TapeReader& tape) {
  UseReader uses;
  while (true) {
    const auto frame = tape.next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame) return uses.take();
    if (const auto* turn = std::get_if<recording::Turn>(*frame)) uses.add(*turn);
  }
}

}  // namespace headroom::ctl
