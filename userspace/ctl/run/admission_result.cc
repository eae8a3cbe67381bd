// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/admission_result.h"

#include "ctl/admit/admit_command.h"

#include <headroom/quantity.h>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Json = nlohmann::json;

QosClass qos_named(std::string_view text) {
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable})
    if (name(qos) == text) return qos;
  return QosClass::kBestEffort;
}

std::vector<PreemptedPod> preempted_pods_of(const Json& pod) {
  std::vector<PreemptedPod> all;
  for (const Json& other : pod.at("preemption_victims"))
    all.push_back({.pod_namespace = other.at("namespace").get<std::string>(),
                   .name = other.at("name").get<std::string>(),
                   .uid = other.at("uid").get<std::string>(),
                   .qos = qos_named(other.at("qos").get<std::string>())});
  return all;
}

Bytes memory_of(const Json& allocatable) {
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
    const Json json = Json::parse(answer);
    for (const Json& pod : json.at("pods"))
      admission.preempted = preempted_pods_of(pod);
    admission.allocatable_memory = memory_of(json.at("allocatable"));
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
  return admission;
}

}  // namespace headroom::ctl
