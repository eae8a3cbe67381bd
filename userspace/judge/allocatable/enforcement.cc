// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/enforcement.h"

#include "judge/allocatable/double_quoted.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace headroom {
namespace {

constexpr std::string_view kField = "enforceNodeAllocatable";
constexpr std::string_view kNamed = "enforceNodeAllocatable (--enforce-node-allocatable)";
constexpr std::string_view kPods = "pods";
constexpr std::string_view kNone = "none";

// One of the two reserves and the words it is spoken of in.
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

  // Of the i-th key of the list.
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

}  // namespace

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

}  // namespace headroom
