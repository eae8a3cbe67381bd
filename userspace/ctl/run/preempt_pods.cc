// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/preempt_pods.h"

#include "act/units/transient_slice.h"
#include "judge/allocatable/cgroup/cgroup_name.h"

#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace headroom::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// systemd kills a pod that exceeds its grace period; this limit is for one that cannot be killed.
constexpr std::chrono::minutes kStopTimeout{5};
constexpr std::chrono::milliseconds kPollPeriod{50};

struct PodUnit {
  std::string unit;
  std::filesystem::path cgroup;
};

Result<PodUnit> pod_unit_of(const PreemptedPod& pod, const config::Config& config,
                            const std::filesystem::path& cgroups) {
  const auto kubepods = CgroupName::parse(CgroupDriver::kSystemd, config.pods_cgroup);
  if (!kubepods) return failure(kubepods.error().what());
  const auto name = pod_name(*kubepods, pod.qos, pod.uid);
  if (!name) return failure(name.error().what());
  return PodUnit{name->unit(), cgroups / name->path(CgroupDriver::kSystemd).substr(1)};
}

void log_preemption(const PreemptedPod& pod, const std::string& preemptor) {
  const std::string name = pod.pod_namespace + "/" + pod.name;
  const std::string what =
      "preempting " + name + ": Preempted in order to admit critical pod " + preemptor;
  std::fprintf(stderr, "headroomctl: %s\n", what.c_str());
  sd_journal_send("MESSAGE=%s", what.c_str(), "PRIORITY=%i", LOG_NOTICE,
                  "SYSLOG_IDENTIFIER=headroomctl", "HEADROOM_POD=%s", name.c_str(),
                  "HEADROOM_POD_UID=%s", pod.uid.c_str(), "HEADROOM_REASON=Preempting", nullptr);
}

Result<> wait_until_gone(const PodUnit& pod_unit, Clock::time_point until) {
  while (::access(pod_unit.cgroup.c_str(), F_OK) == 0) {
    if (Clock::now() > until) return failure(pod_unit.unit + " was stopped but still exists");
    std::this_thread::sleep_for(kPollPeriod);
  }
  return {};
}

}  // namespace

Result<> preempt_pods(const std::vector<PreemptedPod>& pods, const std::string& preemptor,
                      const config::Config& config, const std::filesystem::path& cgroups) {
  std::vector<PodUnit> pod_units;
  for (const PreemptedPod& pod : pods) {
    auto pod_unit = pod_unit_of(pod, config, cgroups);
    if (!pod_unit) return tl::make_unexpected(pod_unit.error());
    pod_units.push_back(std::move(*pod_unit));
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    log_preemption(pods[i], preemptor);
    if (auto stopped = act::stop_unit(pod_units[i].unit); !stopped) return stopped;
  }
  const Clock::time_point until = Clock::now() + kStopTimeout;
  for (const PodUnit& pod_unit : pod_units)
    if (auto gone = wait_until_gone(pod_unit, until); !gone) return gone;
  return {};
}

}  // namespace headroom::ctl
