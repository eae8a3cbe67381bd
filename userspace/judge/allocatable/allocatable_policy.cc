// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/allocatable_policy.h"

#include "judge/allocatable/double_quoted.h"
#include "judge/allocatable/enforcement.h"

#include <headroom/quantity.h>

#include <charconv>
#include <string_view>
#include <utility>

namespace headroom {
namespace {

using Errors = std::vector<SettingError>;
using StringMap = std::map<std::string, std::string>;

constexpr std::string_view kAnyUid = "00000000-0000-0000-0000-000000000000";

void put(Amounts& amounts, std::string_view resource, const Quantity& quantity) {
  if (resource == "cpu") amounts.cpu = MilliCpu{quantity.milli_value()};
  if (resource == "memory") amounts.memory = Bytes{quantity.value()};
  if (resource == "ephemeral-storage") amounts.ephemeral_storage = Bytes{quantity.value()};
  if (resource == "pid") amounts.pids = Tasks{quantity.value()};
}

bool reservable(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
         resource == "pid";
}

// A value of kubeReserved or systemReserved, in the kubelet's words.
Result<Quantity> parse_reserved(const std::string& resource, const std::string& text) {
  if (!reservable(resource))
    return failure("cannot reserve " + double_quoted(resource) +
                   " resource; what can be is cpu, memory, ephemeral-storage and pid");
  auto quantity = Quantity::parse(text);
  if (!quantity)
    return failure("failed to parse quantity " + double_quoted(text) + " for " +
                   double_quoted(resource) + " resource: " + quantity.error().what);
  if (quantity->sign() < 0)
    return failure("resource quantity for " + double_quoted(resource) +
                   " cannot be negative: " + text);
  return quantity;
}

Amounts parse_amounts(const char* field, const char* flag, const StringMap& configured,
                      Errors& errors) {
  Amounts amounts;
  for (const auto& [resource, text] : configured) {
    if (const auto quantity = parse_reserved(resource, text))
      put(amounts, resource, *quantity);
    else
      errors.push_back({field, resource,
                        std::string(flag) + " value failed to parse: " + quantity.error().what});
  }
  return amounts;
}

// "50%"; whole ones only, as the kubelet has it.
Result<int> parse_percentage(std::string_view text) {
  if (!text.ends_with('%')) return failure("percentage expected, got '" + std::string(text) + "'");
  int percent = 0;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, percent);
  if (error != std::errc() || end != last)
    return failure("invalid number in percentage '" + std::string(text) + "'");
  if (percent < 0 || percent > 100) return failure("percentage must be between 0 and 100");
  return percent;
}

std::optional<int> parse_qos_reserved(const StringMap& configured, Errors& errors) {
  std::optional<int> memory;
  const auto add_error = [&](const std::string& resource, const std::string& what) {
    errors.push_back({"qosReserved", resource, "--qos-reserved value failed to parse: " + what});
  };
  for (const auto& [resource, text] : configured) {
    if (resource != "memory") {
      add_error(resource,
                "cannot reserve " + double_quoted(resource) + " resource; only memory can be");
      continue;
    }
    if (const auto percent = parse_percentage(text))
      memory = *percent;
    else
      add_error(resource, "failed to parse percentage " + double_quoted(text) + " for " +
                              double_quoted(resource) + " resource: " + percent.error().what);
  }
  return memory;
}

// Unlike the kubelet, a name that no slice can have is refused here and not when it is not found.
std::string parse_reserved_path(const char* field, const std::string& configured,
                                CgroupDriver driver, Errors& errors) {
  if (configured.empty()) return "";
  const auto path = reserved_path(driver, configured);
  if (path) return *path;
  errors.push_back({field, "", "invalid configuration: " + path.error().what()});
  return "";
}

std::optional<CgroupName> parse_kubepods(const AllocatableConfig& configured, Errors& errors) {
  if (!configured.cgroups_per_qos) return std::nullopt;
  auto name = kubepods_name(configured.cgroup_root);
  // The longest name there will be must fit as well: a pod's below its tier.
  const auto longest = name ? pod_name(*name, QosClass::kBestEffort, kAnyUid) : name;
  if (longest) return std::move(*name);
  errors.push_back({"cgroupRoot", "", "invalid configuration: " + longest.error().what()});
  return std::nullopt;
}

// The CPUs named replace both amounts of cpu: the kubelet puts them under systemReserved.
void reserve_cpus(std::int64_t cpus, AllocatablePolicy& policy) {
  policy.kube.amounts.cpu.reset();
  policy.system.amounts.cpu = MilliCpu{cpus * 1000};
}

void check_reserved_cpus(const AllocatableConfig& configured, Errors& errors) {
  if (!configured.reserved_cpus) return;
  if (configured.kube_reserved_cgroup.empty() && configured.system_reserved_cgroup.empty()) return;
  errors.push_back({"reservedSystemCPUs", "",
                    "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with "
                    "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup "
                    "(--kube-reserved-cgroup)"});
}

// Two reserves written to one cgroup would overwrite each other in turn. The kubelet lets it pass.
void check_paths_differ(const AllocatablePolicy& policy, Errors& errors) {
  const bool both = policy.kube.enforcement != Enforcement::kNone &&
                    policy.system.enforcement != Enforcement::kNone;
  if (!both || policy.kube.path.empty() || policy.kube.path != policy.system.path) return;
  errors.push_back({"kubeReservedCgroup", "",
                    "invalid configuration: kubeReservedCgroup (--kube-reserved-cgroup) and "
                    "systemReservedCgroup (--system-reserved-cgroup) are both " +
                        double_quoted(policy.kube.path) +
                        "; each reserve needs a cgroup of its own"});
}

}  // namespace

tl::expected<AllocatablePolicy, std::vector<SettingError>> allocatable_policy(
    const AllocatableConfig& configured) {
  Errors errors;
  AllocatablePolicy policy{.driver = configured.driver,
                           .ignore_eviction_threshold = configured.ignore_eviction_threshold};
  apply_enforcements(configured, policy, errors);
  check_reserved_cpus(configured, errors);
  policy.kube.amounts =
      parse_amounts("kubeReserved", "--kube-reserved", configured.kube_reserved, errors);
  policy.system.amounts =
      parse_amounts("systemReserved", "--system-reserved", configured.system_reserved, errors);
  if (configured.reserved_cpus) reserve_cpus(*configured.reserved_cpus, policy);
  policy.kube.path = parse_reserved_path("kubeReservedCgroup", configured.kube_reserved_cgroup,
                                         configured.driver, errors);
  policy.system.path = parse_reserved_path(
      "systemReservedCgroup", configured.system_reserved_cgroup, configured.driver, errors);
  check_paths_differ(policy, errors);
  policy.kubepods = parse_kubepods(configured, errors);
  policy.qos_reserved_memory = parse_qos_reserved(configured.qos_reserved, errors);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return policy;
}

}  // namespace headroom
