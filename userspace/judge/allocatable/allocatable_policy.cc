// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/allocatable_policy.h"

#include "judge/allocatable/amounts.h"

#include <headroom/quantity.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {
namespace {

// The rules of enforceNodeAllocatable (kubelet: cm/node_container_manager_linux.go).

constexpr std::string_view kField = "enforceNodeAllocatable";
constexpr std::string_view kNamed = "enforceNodeAllocatable (--enforce-node-allocatable)";
constexpr std::string_view kPods = "pods";
constexpr std::string_view kNone = "none";

// One of the two reservations, with the names used in messages.
struct ReserveKind {
  std::string_view all;
  std::string_view compressible;
  std::string_view cgroup;  // as the kubelet's messages name the field
  std::string AllocatableConfig::*cgroup_setting;
  Reserve AllocatablePolicy::*reserve;

  bool has(std::string_view key) const { return key == all || key == compressible; }
};

constexpr ReserveKind kSystem{"system-reserved", "system-reserved-compressible",
                              "systemReservedCgroup (--system-reserved-cgroup)",
                              &AllocatableConfig::system_reserved_cgroup,
                              &AllocatablePolicy::system};
constexpr ReserveKind kKube{"kube-reserved", "kube-reserved-compressible",
                            "kubeReservedCgroup (--kube-reserved-cgroup)",
                            &AllocatableConfig::kube_reserved_cgroup, &AllocatablePolicy::kube};

bool contains(const AllocatableConfig& configured, std::string_view key) {
  return std::find(configured.enforce.begin(), configured.enforce.end(), key) !=
         configured.enforce.end();
}

class Rules {
 public:
  Rules(const AllocatableConfig& configured, std::vector<SettingError>& errors)
      : configured_(configured), errors_(errors) {}

  void reject_both(const ReserveKind& reserve_kind) {
    if (!contains(configured_, reserve_kind.all) ||
        !contains(configured_, reserve_kind.compressible))
      return;
    add_error(reserve_kind.compressible, "both " + double_quoted(reserve_kind.all) + " and " +
                                             double_quoted(reserve_kind.compressible) +
                                             " cannot be specified together in " +
                                             std::string(kNamed));
  }

  // Checks the i-th key of the list.
  void check(std::size_t i) {
    const std::string& key = configured_.enforce[i];
    if (repeated(i))
      return add_error(
          key, "duplicated enforcements " + double_quoted(key) + " in " + std::string(kNamed));
    if (key == kNone) return require_alone();
    if (key != kPods && !kSystem.has(key) && !kKube.has(key)) return unknown(key);
    require_cgroup(kSystem, key);
    require_cgroup(kKube, key);
    if (!configured_.cgroups_per_qos)
      add_error(key, "cgroupsPerQOS (--cgroups-per-qos) must be set to true when " +
                         double_quoted(key) + " contained in " + std::string(kNamed));
  }

 private:
  bool repeated(std::size_t i) const {
    const auto self = configured_.enforce.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find(configured_.enforce.begin(), self, *self) != self;
  }

  void require_alone() {
    if (configured_.enforce.size() > 1)
      add_error(kNone, std::string(kNamed) + " may not contain additional enforcements when " +
                           double_quoted(kNone) + " is specified");
  }

  void require_cgroup(const ReserveKind& reserve_kind, std::string_view key) {
    if (!reserve_kind.has(key) || !(configured_.*reserve_kind.cgroup_setting).empty()) return;
    add_error(key, std::string(reserve_kind.cgroup) + " must be specified when " +
                       double_quoted(reserve_kind.all) + " or " +
                       double_quoted(reserve_kind.compressible) + " included in " +
                       std::string(kNamed));
  }

  void unknown(std::string_view key) {
    add_error(key, "option " + double_quoted(key) + " specified for " + std::string(kNamed) +
                       ". Valid options are " + double_quoted(kPods) + ", " +
                       double_quoted(kSystem.all) + ", " + double_quoted(kSystem.compressible) +
                       ", " + double_quoted(kKube.all) + ", " + double_quoted(kKube.compressible) +
                       " or " + double_quoted(kNone));
  }

  void add_error(std::string_view key, const std::string& what) {
    errors_.push_back({std::string(kField), std::string(key), "invalid configuration: " + what});
  }

  const AllocatableConfig& configured_;
  std::vector<SettingError>& errors_;
};

Enforcement enforcement_of(const ReserveKind& reserve_kind, const AllocatableConfig& configured) {
  if (contains(configured, reserve_kind.all)) return Enforcement::kAll;
  return contains(configured, reserve_kind.compressible) ? Enforcement::kCompressible
                                                         : Enforcement::kNone;
}

// Reads the list into the policy; violations are added to `errors` in the kubelet's words and
// order.
void apply_enforcements(const AllocatableConfig& configured, AllocatablePolicy& policy,
                        std::vector<SettingError>& errors) {
  Rules rules(configured, errors);
  rules.reject_both(kSystem);
  rules.reject_both(kKube);
  for (std::size_t i = 0; i < configured.enforce.size(); ++i)
    rules.check(i);
  policy.enforce_pods = contains(configured, kPods);
  for (const ReserveKind* reserve_kind : {&kSystem, &kKube})
    (policy.*reserve_kind->reserve).enforcement = enforcement_of(*reserve_kind, configured);
}

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

// "50%"; whole numbers only, as in the kubelet.
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
  // The longest possible name must fit as well: a pod's below its tier.
  const auto longest = name ? pod_name(*name, QosClass::kBestEffort, kAnyUid) : name;
  if (longest) return std::move(*name);
  errors.push_back({"cgroupRoot", "", "invalid configuration: " + longest.error().what()});
  return std::nullopt;
}

// Explicit CPUs replace both amounts of cpu: the kubelet counts them as systemReserved.
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

// Two reservations in one cgroup would overwrite each other. The kubelet does not check this.
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
