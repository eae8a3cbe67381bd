// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/displace.h"

#include "act/transient_slice.h"
#include "judge/allocatable/cgroup_name.h"

#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace headroom::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// systemd kills whoever outlasts his grace; this is for one that cannot die.
constexpr std::chrono::minutes kLongest{5};
constexpr std::chrono::milliseconds kPause{50};

struct Place {
  std::string unit;
  std::filesystem::path cgroup;
};

Result<Place> place_of(const Displaced& pod, const config::Config& config,
                       const std::filesystem::path& cgroups) {
  const auto kubepods = CgroupName::parse(CgroupDriver::kSystemd, config.pods_cgroup);
  if (!kubepods) return failure(kubepods.error().what());
  const auto name = pod_name(*kubepods, pod.qos, pod.uid);
  if (!name) return failure(name.error().what());
  return Place{name->unit(), cgroups / name->path(CgroupDriver::kSystemd).substr(1)};
}

void say(const Displaced& pod, const std::string& by) {
  const std::string name = pod.pod_namespace + "/" + pod.name;
  const std::string what =
      "displacing " + name + ": Preempted in order to admit critical pod " + by;
  std::fprintf(stderr, "headroomctl: %s\n", what.c_str());
  sd_journal_send("MESSAGE=%s", what.c_str(), "PRIORITY=%i", LOG_NOTICE,
                  "SYSLOG_IDENTIFIER=headroomctl", "HEADROOM_POD=%s", name.c_str(),
                  "HEADROOM_POD_UID=%s", pod.uid.c_str(), "HEADROOM_REASON=Preempting", nullptr);
}

Result<> wait_until_gone(const Place& place, Clock::time_point until) {
  while (::access(place.cgroup.c_str(), F_OK) == 0) {
    if (Clock::now() > until) return failure(place.unit + " was stopped and is still there");
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

}  // namespace

Result<> displace(const std::vector<Displaced>& pods, const std::string& by,
                  const config::Config& config, const std::filesystem::path& cgroups) {
  std::vector<Place> places;
  for (const Displaced& pod : pods) {
    auto place = place_of(pod, config, cgroups);
    if (!place) return tl::make_unexpected(place.error());
    places.push_back(std::move(*place));
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    say(pods[i], by);
    if (auto stopped = act::stop_unit(places[i].unit); !stopped) return stopped;
  }
  const Clock::time_point until = Clock::now() + kLongest;
  for (const Place& place : places)
    if (auto gone = wait_until_gone(place, until); !gone) return gone;
  return {};
}

}  // namespace headroom::ctl
