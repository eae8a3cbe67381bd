// SPDX-License-Identifier: Apache-2.0
#include "ctl/advise/reserve_use.h"

#include <headroom/signal.h>
#include <headroom/snapshot.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace headroom::ctl {
namespace {

using recording::SystemCgroup;
using recording::SystemRole;
using recording::SystemUse;

// A longer time between two sweeps is a gap.
constexpr Duration kLongestInterval = 2 * kReserveStep;
// Nodes of one kind differ by what firmware and kernel take.
constexpr double kSameSize = 0.05;

using Readings = OfResources<std::optional<double>>;

std::optional<double> in_use(const std::optional<Observation>& observation) {
  if (!observation) return std::nullopt;
  return static_cast<double>(observation->capacity - observation->available);
}

// A value that falls is of a cgroup that was removed below it: unknown.
std::optional<double> milli_cpus(const hr_record& before, const hr_record& now, Duration length) {
  if (!(before.valid & now.valid & HR_CPU) || now.cpu_usage_ns < before.cpu_usage_ns)
    return std::nullopt;
  return static_cast<double>(now.cpu_usage_ns - before.cpu_usage_ns) * 1000 /
         static_cast<double>(length.count());
}

// "/" is above each path, and "/a.slice" above "/a.slice/b.service".
bool is_above(std::string_view above, std::string_view path) {
  if (above == "/") return path != "/";
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

// The nearest of the cgroups above; absent: it is the root, or the root was not read.
std::optional<std::size_t> parent_of(const std::vector<SystemCgroup>& cgroups, std::size_t child) {
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < cgroups.size(); ++i)
    if (is_above(cgroups[i].path, cgroups[child].path) &&
        (!nearest || cgroups[i].path.size() > cgroups[*nearest].path.size()))
      nearest = i;
  return nearest;
}

// One resource of one step while it is read.
struct Step {
  Duration covered{0};
  OfReserves<std::map<std::string, double>> cgroups;
  OfReserves<double> sum{};
};

class RecordingUse {
 public:
  explicit RecordingUse(RecordedReserves& to) : to_(to) {}

  Result<> add(const recording::Turn& turn) {
    observations_ = turn.snapshot.observations;
    has_pods_ = has_pods_ || !turn.snapshot.pods.empty();
    return check_size();
  }

  void add(const SystemUse& use) {
    to_.present = use.reserves;
    unaccounted_ = use.unaccounted_memory;
    const Duration length = last_ ? use.at - *last_ : Duration::zero();
    if (!last_)
      first_ = step_begin_ = use.at;
    else if (use.at - step_begin_ >= kReserveStep)
      end_step(use.at);
    if (length > Duration::zero() && length <= kLongestInterval) add_sample(use, length);
    last_ = use.at;
    before_.clear();
    for (const SystemCgroup& cgroup : use.cgroups) {
      has_pods_cgroup_ = has_pods_cgroup_ || cgroup.role == SystemRole::kPods;
      before_.emplace(cgroup.id, cgroup.record);
    }
  }

  Result<> end() {
    if (!last_)
      return failure(
          "the recording has no use of system cgroups; headroomd records it since "
          "format 10 of recordings");
    if (has_pods_ && !has_pods_cgroup_)
      return failure(
          "the recording has pods, and no cgroup of all pods: is podsCgroup of headroomd right?");
    end_step(*last_);
    to_.recorded += *last_ - first_;
    return {};
  }

 private:
  Result<> check_size() {
    const auto size = [&](Signal signal, ReservedResource resource) -> bool {
      const auto& observation = of(observations_, signal);
      if (!observation) return true;
      const auto now = static_cast<double>(observation->capacity);
      double& known = to_.capacity[resource];
      if (known > 0 && std::abs(now - known) > kSameSize * known) return false;
      known = std::max(known, now);
      return true;
    };
    size(Signal::kPidAvailable, kPids);
    if (size(Signal::kMemoryAvailable, kMemory)) return {};
    return failure("the node has another amount of memory than that of the recordings before it");
  }

  // The kernel's own memory is in use as well.
  std::optional<double> memory_of_node() const {
    const auto used = in_use(of(observations_, Signal::kMemoryAvailable));
    if (!used || !unaccounted_) return std::nullopt;
    return *used + static_cast<double>(*unaccounted_);
  }

  Readings readings_of(const SystemCgroup& cgroup, Duration length) const {
    Readings found;
    if (const auto before = before_.find(cgroup.id); before != before_.end())
      found[kCpu] = milli_cpus(before->second, cgroup.record, length);
    if (cgroup.role == SystemRole::kNode) {
      found[kMemory] = memory_of_node();
      found[kPids] = in_use(of(observations_, Signal::kPidAvailable));
      return found;
    }
    if (const auto held = working_set(cgroup.record))
      found[kMemory] = static_cast<double>(held->count);
    if (cgroup.record.valid & HR_PIDS)
      found[kPids] = static_cast<double>(cgroup.record.pids_current);
    return found;
  }

  void add_sample(const SystemUse& use, Duration length) {
    std::vector<Readings> readings;
    for (const SystemCgroup& cgroup : use.cgroups) {
      readings.push_back(readings_of(cgroup, length));
      count_limit_hits(cgroup);
    }
    for (std::size_t resource = 0; resource < kReservedResources; ++resource)
      add_resource(use.cgroups, readings, resource, length);
  }

  // Without a reading of the pods or of the kubelet, their use would count as the system's. Of
  // another cgroup without a reading the use is in that of the one above.
  static bool is_known(const std::vector<SystemCgroup>& cgroups,
                       const std::vector<Readings>& readings, std::size_t resource) {
    bool has_root = false;
    for (std::size_t i = 0; i < cgroups.size(); ++i) {
      if (cgroups[i].role != SystemRole::kOther && !readings[i][resource]) return false;
      has_root = has_root || cgroups[i].role == SystemRole::kNode;
    }
    return has_root;
  }

  void add_resource(const std::vector<SystemCgroup>& cgroups, const std::vector<Readings>& readings,
                    std::size_t resource, Duration length) {
    if (!is_known(cgroups, readings, resource)) return;
    std::vector<double> own;
    for (const Readings& each : readings)
      own.push_back(each[resource].value_or(0));
    for (std::size_t i = 0; i < cgroups.size(); ++i)
      if (const auto parent = parent_of(cgroups, i))
        own[*parent] -= readings[i][resource].value_or(0);
    Step& step = steps_[resource];
    step.covered += length;
    const bool is_mean = resource == kCpu;
    const auto put = [&](double& to, double value) {
      to = is_mean ? to + value * static_cast<double>(length.count()) : std::max(to, value);
    };
    OfReserves<double> sum{};
    for (std::size_t i = 0; i < cgroups.size(); ++i) {
      if (cgroups[i].role == SystemRole::kPods) continue;
      const Reserve reserve =
          cgroups[i].role == SystemRole::kKube ? kKubeReserved : kSystemReserved;
      const double used = std::max(own[i], 0.0);
      sum[reserve] += used;
      put(step.cgroups[reserve][cgroups[i].path], used);
    }
    for (std::size_t reserve = 0; reserve < kReserves; ++reserve)
      put(step.sum[reserve], sum[reserve]);
  }

  void count_limit_hits(const SystemCgroup& cgroup) {
    const auto before = before_.find(cgroup.id);
    const hr_record& now = cgroup.record;
    const bool limited = (now.valid & HR_MEMORY_LIMITS) && now.memory_max < HR_NO_LIMIT;
    if (before == before_.end() || !limited || cgroup.role == SystemRole::kPods ||
        !(before->second.valid & now.valid & HR_MEMORY_EVENTS) ||
        now.events_max < before->second.events_max)
      return;
    const Reserve reserve = cgroup.role == SystemRole::kKube ? kKubeReserved : kSystemReserved;
    to_.use[reserve].limit_hits += now.events_max - before->second.events_max;
  }

  void end_step(Instant at) {
    for (std::size_t resource = 0; resource < kReservedResources; ++resource) {
      const Step step = std::exchange(steps_[resource], {});
      if (step.covered < kReserveStep / 2) continue;
      const double divisor = resource == kCpu ? static_cast<double>(step.covered.count()) : 1;
      for (std::size_t reserve = 0; reserve < kReserves; ++reserve)
        append(step, reserve, resource, divisor);
    }
    step_begin_ = at;
  }

  // A cgroup that was not there used nothing.
  void append(const Step& step, std::size_t reserve, std::size_t resource, double divisor) {
    ReservedUse& use = to_.use[reserve];
    use.sum[resource].push_back(step.sum[reserve] / divisor);
    for (const auto& [path, used] : step.cgroups[reserve])
      use.cgroups.try_emplace(path);
    for (auto& [path, series] : use.cgroups) {
      const auto used = step.cgroups[reserve].find(path);
      series[resource].resize(use.sum[resource].size() - 1);
      series[resource].push_back(used == step.cgroups[reserve].end() ? 0 : used->second / divisor);
    }
  }

  RecordedReserves& to_;
  Observations observations_;
  std::optional<std::int64_t> unaccounted_;
  bool has_pods_ = false, has_pods_cgroup_ = false;
  std::unordered_map<CgroupId, hr_record> before_;
  std::optional<Instant> last_;
  Instant first_, step_begin_;
  OfResources<Step> steps_;
};

}  // namespace

std::size_t RecordedReserves::steps() const {
  std::size_t most = 0;
  for (const std::vector<double>& series : use[kSystemReserved].sum)
    most = std::max(most, series.size());
  return most;
}

Result<> add_recording(recording::TapeReader& tape, RecordedReserves& to) {
  RecordingUse use(to);
  while (true) {
    const auto frame = tape.next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame) return use.end();
    if (const auto* turn = std::get_if<recording::Turn>(*frame)) {
      if (auto added = use.add(*turn); !added) return added;
    } else if (const auto* system = std::get_if<SystemUse>(*frame)) {
      use.add(*system);
    }
  }
}

}  // namespace headroom::ctl
