// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/enforcement_rules.h"

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

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

bool says(const AllocatableTold& told, std::string_view key) {
  return std::find(told.enforce.begin(), told.enforce.end(), key) != told.enforce.end();
}

class Rules {
 public:
  Rules(const AllocatableTold& told, std::vector<SettingError>& errors)
      : told_(told), errors_(errors) {}

  void exclude_each_other(const Side& side) {
    if (!says(told_, side.all) || !says(told_, side.compressible)) return;
    complain(side.compressible, "both " + quoted(side.all) + " and " + quoted(side.compressible) +
                                    " cannot be specified together in " + std::string(kNamed));
  }

  // Of the i-th key of the list.
  void check(std::size_t i) {
    const std::string& key = told_.enforce[i];
    if (repeated(i))
      return complain(key, "duplicated enforcements " + quoted(key) + " in " + std::string(kNamed));
    if (key == kNone) return needs_to_be_alone();
    if (key != kPods && !kSystem.has(key) && !kKube.has(key)) return unknown(key);
    needs_cgroup(kSystem, key);
    needs_cgroup(kKube, key);
    if (!told_.cgroups_per_qos)
      complain(key, "cgroupsPerQOS (--cgroups-per-qos) must be set to true when " + quoted(key) +
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
                          quoted(kNone) + " is specified");
  }

  void needs_cgroup(const Side& side, std::string_view key) {
    if (!side.has(key) || !(told_.*side.told_cgroup).empty()) return;
    complain(key, std::string(side.cgroup) + " must be specified when " + quoted(side.all) +
                      " or " + quoted(side.compressible) + " included in " + std::string(kNamed));
  }

  void unknown(std::string_view key) {
    complain(key, "option " + quoted(key) + " specified for " + std::string(kNamed) +
                      ". Valid options are " + quoted(kPods) + ", " + quoted(kSystem.all) + ", " +
                      quoted(kSystem.compressible) + ", " + quoted(kKube.all) + ", " +
                      quoted(kKube.compressible) + " or " + quoted(kNone));
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
