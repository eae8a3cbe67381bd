// SPDX-License-Identifier: Apache-2.0
// CgroupName: a cgroup as the kubelet names it, [kubepods, burstable, pod<uid>], in either
// driver's spelling (kubelet: cm/cgroup_manager_linux.go).
//   systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
//   cgroupfs  /kubepods/burstable/pod<uid>
// In a systemd slice's name a dash separates the levels of the tree, so dashes within a component
// become underscores; an underscore in a component would be ambiguous and is refused.
#pragma once

#include <headroom/pod.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

enum class CgroupDriver : std::uint8_t { kCgroupfs, kSystemd };

struct CgroupNameError {
  enum class Reason : std::uint8_t {
    kEmptyComponent,  // "/a//b", "a--b.slice"
    kSlash,           // within a component
    kUnderscore,      // within a component
    kDots,            // "." or ".."
    kCharacter,       // one that a unit name must not have
    kTooLong,         // no unit name, and no file name, has more than 255 bytes
    kNotASlice,       // the systemd driver accepts slices only
    kMisplaced,       // a slice, but not below the slices that its name says
    kRoot,            // the root cgroup where a cgroup of its own is needed
  };
  Reason reason = Reason::kEmptyComponent;
  std::string name;  // the component, unit or path that is refused

  std::string what() const;
  friend bool operator==(const CgroupNameError&, const CgroupNameError&) = default;
};

class CgroupName {
 public:
  using Parsed = tl::expected<CgroupName, CgroupNameError>;

  CgroupName() = default;  // the root
  // No component, or a single empty one, is the root, as in the kubelet.
  static Parsed of(std::vector<std::string> components);
  // A path from the cgroup root on, with or without the leading slash.
  static Parsed parse(CgroupDriver driver, std::string_view path);
  // "kubepods-burstable.slice"; "-.slice" is the root.
  static Parsed parse_unit(std::string_view unit);

  Parsed child(std::string component) const;

  const std::vector<std::string>& components() const { return components_; }
  bool is_root() const { return components_.empty(); }
  std::string path(CgroupDriver driver) const;
  std::string unit() const;

  friend bool operator==(const CgroupName&, const CgroupName&) = default;

 private:
  std::vector<std::string> components_;
};

// The parent cgroup of the pods of a class: `kubepods` itself if Guaranteed, else its tier.
CgroupName::Parsed qos_tier_name(const CgroupName& kubepods, QosClass qos);
CgroupName::Parsed pod_name(const CgroupName& kubepods, QosClass qos, std::string_view uid);

// cgroupRoot/kubepods. Both drivers take cgroupRoot as an internal name, "/a/b".
CgroupName::Parsed kubepods_name(std::string_view cgroup_root);

// The path that kubeReservedCgroup or systemReservedCgroup means. Under systemd it must be a slice,
// given by its path or its unit's name; the kubelet silently turns anything else into another
// cgroup ("/system.slice/foo.service" into /foo.service.slice), headroom refuses it. Under cgroupfs
// any path is allowed, with underscores.
tl::expected<std::string, CgroupNameError> reserved_path(CgroupDriver driver,
                                                         std::string_view configured);

}  // namespace headroom
