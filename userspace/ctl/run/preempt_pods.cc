// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/preempt_pods.h"

#include "act/units/dbus_unit_manager.h"
#include "ctl/common/commands.h"
#include "judge/allocatable/cgroup/cgroup_name.h"

#include <headroom/quantity.h>

#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// systemd kills a pod that exceeds its grace period; this limit is for a pod that cannot be killed.
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

namespace {

QosClass qos_named(std::string_view text) {
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable})
    if (name(qos) == text) return qos;
  return QosClass::kBestEffort;
}

std::vector<PreemptedPod> preempted_pods_of(const nlohmann::json& pod) {
  std::vector<PreemptedPod> all;
  for (const nlohmann::json& other : pod.at("preemption_victims"))
    all.push_back({.pod_namespace = other.at("namespace").get<std::string>(),
                   .name = other.at("name").get<std::string>(),
                   .uid = other.at("uid").get<std::string>(),
                   .qos = qos_named(other.at("qos").get<std::string>())});
  return all;
}

Bytes memory_of(const nlohmann::json& allocatable) {
  const auto memory = allocatable.find("memory");
  if (memory == allocatable.end()) return Bytes{0};
  const auto quantity = Quantity::parse(memory->get<std::string>());
  return Bytes{quantity ? quantity->value() : 0};
}

}  // namespace

Result<AdmissionResult> read_admission(std::string_view answer) {
  const auto rendered = render_admission(answer, {});
  if (!rendered) return tl::make_unexpected(rendered.error());
  AdmissionResult admission{
      .admitted = rendered->all_admitted, .text = rendered->text, .preempted = {}};
  try {
    const nlohmann::json json = nlohmann::json::parse(answer);
    for (const nlohmann::json& pod : json.at("pods"))
      admission.preempted = preempted_pods_of(pod);
    admission.allocatable_memory = memory_of(json.at("allocatable"));
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
  return admission;
}

}  // namespace headroom::ctl
