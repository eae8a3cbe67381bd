// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/enforcement_rules.h"

#include "judge/allocatable/in_quotes.h"

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
struct Side {
  std::string_view all;
  std::string_view compressible;
  std::string_view cgroup;  // as the kubelet's messages name the field
  std::string AllocatableTold::*told_cgroup;
  Reserve AllocatablePolicy::*reserve;

  bool has(std::string_view key) const { return key == all || key == compressible; }
};

constexpr Side kSystem{"system-reserved", "system-reserved-compressible",
                       "systemReservedCgroup (--system-reserved-cgroup)",
                       &AllocatableTold::system_reserved_cgroup, &AllocatablePolicy::system};
constexpr Side kKube{"kube-reserved", "kube-reserved-compressible",
                     "kubeReservedCgroup (--kube-reserved-cgroup)",
                     &AllocatableTold::kube_reserved_cgroup, &AllocatablePolicy::kube};

bool says(const AllocatableTold& told, std::string_view key) {
  return std::find(told.enforce.begin(), told.enforce.end(), key) != told.enforce.end();
}

class Rules {
 public:
  Rules(const AllocatableTold& told, std::vector<SettingError>& errors)
      : told_(told), errors_(errors) {}

  void exclude_each_other(const Side& side) {
    if (!says(told_, side.all) || !says(told_, side.compressible)) return;
    complain(side.compressible, "both " + in_quotes(side.all) + " and " +
                                    in_quotes(side.compressible) +
                                    " cannot be specified together in " + std::string(kNamed));
  }

  // Of the i-th key of the list.
  void check(std::size_t i) {
    const std::string& key = told_.enforce[i];
    if (repeated(i))
      return complain(key,
                      "duplicated enforcements " + in_quotes(key) + " in " + std::string(kNamed));
    if (key == kNone) return needs_to_be_alone();
    if (key != kPods && !kSystem.has(key) && !kKube.has(key)) return unknown(key);
    needs_cgroup(kSystem, key);
    needs_cgroup(kKube, key);
    if (!told_.cgroups_per_qos)
      complain(key, "cgroupsPerQOS (--cgroups-per-qos) must be set to true when " + in_quotes(key) +
                        " contained in " + std::string(kNamed));
  }

 private:
  bool repeated(std::size_t i) const {
    const auto self = told_.enforce.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find(told_.enforce.begin(), self, *self) != self;
  }

  void needs_to_be_alone() {
    if (told_.enforce.size() > 1)
      complain(kNone, std::string(kNamed) + " may not contain additional enforcements when " +
                          in_quotes(kNone) + " is specified");
  }

  void needs_cgroup(const Side& side, std::string_view key) {
    if (!side.has(key) || !(told_.*side.told_cgroup).empty()) return;
    complain(key, std::string(side.cgroup) + " must be specified when " + in_quotes(side.all) +
                      " or " + in_quotes(side.compressible) + " included in " +
                      std::string(kNamed));
  }

  void unknown(std::string_view key) {
    complain(key, "option " + in_quotes(key) + " specified for " + std::string(kNamed) +
                      ". Valid options are " + in_quotes(kPods) + ", " + in_quotes(kSystem.all) +
                      ", " + in_quotes(kSystem.compressible) + ", " + in_quotes(kKube.all) + ", " +
                      in_quotes(kKube.compressible) + " or " + in_quotes(kNone));
  }

  void complain(std::string_view key, const std::string& what) {
    errors_.push_back({std::string(kField), std::string(key), "invalid configuration: " + what});
  }

  const AllocatableTold& told_;
  std::vector<SettingError>& errors_;
};

Enforcement enforcement_of(const Side& side, const AllocatableTold& told) {
  if (says(told, side.all)) return Enforcement::kAll;
  return says(told, side.compressible) ? Enforcement::kCompressible : Enforcement::kNone;
}

}  // namespace

void apply_enforcements(const AllocatableTold& told, AllocatablePolicy& policy,
                        std::vector<SettingError>& errors) {
  Rules rules(told, errors);
  rules.exclude_each_other(kSystem);
  rules.exclude_each_other(kKube);
  for (std::size_t i = 0; i < told.enforce.size(); ++i)
    rules.check(i);
  policy.enforce_pods = says(told, kPods);
  for (const Side* side : {&kSystem, &kKube})
    (policy.*side->reserve).enforcement = enforcement_of(*side, told);
}

}  // namespace headroom
