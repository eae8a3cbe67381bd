// SPDX-License-Identifier: Apache-2.0
// CpusetWriter: writes the CPUs and memory nodes of a cgroup; CpuPartition: the partition of a
// cgroup.
//
// systemd is the single writer of its units, so these are set through it (AllowedCPUs and
// AllowedMemoryNodes, until the next boot); cpuset.cpus and cpuset.mems themselves are written only
// for cgroups that systemd does not manage.
// Calls may block for kTimeout, so the loop must not make them.
#pragma once

#include "act/units/runtime_properties.h"
#include "base/cgroup_directory.h"

#include <headroom/cpuset.h>
#include <headroom/result.h>
#include <headroom/topology.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::act {

// CpuPartition: cpuset.cpus.partition of a cgroup, and cpuset.cpus.exclusive of it and those above.
// systemd has no property for either, so the files are written (cgroup-v2.rst, "Cpuset").
//
// Since Linux 6.7 any cgroup may be a partition if each cgroup above it lists its CPUs in
// cpuset.cpus.exclusive; before, only a child of a partition root. The kernel accepts the write in
// any case; reading the file gives the result: "isolated invalid (...)".

// A cgroup that was removed is not written, nor is another one at its path.
class CpuPartition {
 public:
  explicit CpuPartition(std::filesystem::path cgroup_root) : cgroup_root_(std::move(cgroup_root)) {}

  // "member", "isolated", "isolated invalid (...)"; "": the cgroup or the file does not exist.
  // Paths start at the cgroup root.
  std::string state(const std::string& path) const;

  // cpuset.cpus.exclusive; empty if the file does not exist.
  CpuSet exclusive(const std::string& path) const;

  // Sets the CPUs that all partitions below the cgroup have together. Does nothing if that is set
  // already, or if the kernel has no such file.
  Result<> delegate_exclusive(const SeenCgroup& cgroup, const CpuSet& cpus) const;

  // Makes the cgroup, which has these CPUs in cpuset.cpus, an isolated partition. On error, which
  // has the kernel's reason, the cgroup stays a member.
  Result<> isolate(const SeenCgroup& cgroup, const CpuSet& cpus) const;

  // Makes the cgroup a member again, with empty cpuset.cpus.exclusive. Nothing is to be done if it
  // was removed.
  Result<> make_member(const SeenCgroup& cgroup) const;

 private:
  std::filesystem::path cgroup_root_;
};

}  // namespace headroom::act

namespace headroom::act {

// The unit of a cgroup ("/a.slice/a-b.slice/c.service": "c.service"), if all above it are slices.
std::optional<std::string> unit_of(std::string_view path);

// The form of AllowedCPUs and AllowedMemoryNodes on the bus: bit n of byte m is CPU 8m + n.
std::vector<std::uint8_t> as_bitmap(const CpuSet& cpus);

class CpusetWriter {
 public:
  explicit CpusetWriter(std::filesystem::path cgroup_root,
                        std::filesystem::path control = kRuntimeSettings)
      : cgroup_root_(std::move(cgroup_root)), properties_("headroomd-cpus", std::move(control)) {
    properties_.expect_earlier_calls();
  }

  // An empty set removes the limit. systemd answers before it has written: read the cgroup to see
  // the result. ENOENT: the cgroup was removed, also if another one has its path.
  Result<> write(const SeenCgroup& cgroup, const CpuSet& cpus) {
    return write(cgroup, kCpus, cpus);
  }
  // The same for the NUMA nodes of its memory.
  Result<> write_nodes(const SeenCgroup& cgroup, NodeSet nodes);

  // Removes the settings of a unit whose cgroup was removed, which would apply to it when it is
  // started again, and to the next unit of that name; or of one that has no limit any more. False:
  // systemd does not answer; ask again.
  bool remove_settings(const std::string& path);

 private:
  // A file of the cpuset controller, and the unit's property for it.
  struct Setting {
    const char* file;
    const char* property;
    const char* effective;  // the file with what a cgroup may use, also the root's
  };
  static constexpr Setting kCpus{"cpuset.cpus", "AllowedCPUs", "cpuset.cpus.effective"};
  static constexpr Setting kNodes{"cpuset.mems", "AllowedMemoryNodes", "cpuset.mems.effective"};

  Result<> write(const SeenCgroup& cgroup, const Setting& setting, const CpuSet& set);
  Result<> set_property(const std::string& unit, const Setting& setting, const CpuSet& set);
  Result<> remove_limit(const Fd& directory, const std::string& path, const Setting& setting);

  std::filesystem::path cgroup_root_;
  RuntimeProperties properties_;
};

}  // namespace headroom::act
