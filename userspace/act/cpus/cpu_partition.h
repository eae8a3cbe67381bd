// SPDX-License-Identifier: Apache-2.0
// CpuPartition: cpuset.cpus.partition of a cgroup, and cpuset.cpus.exclusive of it and those above.
// systemd has no property for either, so the files are written (cgroup-v2.rst, "Cpuset").
//
// Since Linux 6.7 a cgroup anywhere may be a partition if each cgroup above it hands its CPUs down
// in cpuset.cpus.exclusive; before, only a child of a partition root. The kernel takes the word in
// any case, and says in the same file what came of it: "isolated invalid (...)".
#pragma once

#include <headroom/cpuset.h>
#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::act {

// Paths are from the cgroup root on.
class CpuPartition {
 public:
  explicit CpuPartition(std::filesystem::path cgroup_root) : cgroup_root_(std::move(cgroup_root)) {}

  // "member", "isolated", "isolated invalid (...)"; "": the cgroup is gone, or has no such file.
  std::string state(const std::string& path) const;

  // cpuset.cpus.exclusive; empty also where there is no such file.
  CpuSet exclusive(const std::string& path) const;

  // What the partitions below `path` have together. Nothing is done where it is so already, or
  // where the kernel has no such file.
  Result<> delegate_exclusive(const std::string& path, const CpuSet& cpus) const;

  // The cgroup, which has these CPUs in cpuset.cpus, becomes an isolated partition of them. An
  // error is the kernel's word; the cgroup is a member then.
  Result<> isolate(const std::string& path, const CpuSet& cpus) const;

  // A member again, with nothing of its own to hand down.
  Result<> make_member(const std::string& path) const;

 private:
  std::string file(const std::string& path, const char* name) const {
    return cgroup_root_.native() + path + "/cpuset.cpus." + name;
  }

  std::filesystem::path cgroup_root_;
};

}  // namespace headroom::act
