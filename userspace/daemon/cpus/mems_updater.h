// SPDX-License-Identifier: Apache-2.0
// MemsUpdater: brings the cgroups' cpuset.mems to what they should be, and repairs what another
// program changes. The kernel moves a container's pages to nodes that it is given.
#pragma once

#include <headroom/result.h>
#include <headroom/topology.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace headroom::daemon {

class MemsUpdater {
 public:
  struct Setup {
    std::filesystem::path cgroup_root;
    // Gives a cgroup (its path from the root on) these nodes; none: no limit of its own.
    std::function<Result<>(const std::string& path, NodeSet nodes)> write;
    std::function<void(const std::string& path)> remove_drop_in;  // the cgroup is gone
    std::function<void()> pause;  // a moment, for a write to take effect
  };
  struct Counters {
    std::uint64_t writes = 0;    // of cpuset.mems
    std::uint64_t failed = 0;    // writes that were refused or had no effect
    std::uint64_t repaired = 0;  // values that another program had changed
  };
  using Wanted = std::map<std::string, NodeSet>;  // by path; empty: no limit of its own

  explicit MemsUpdater(Setup setup) : setup_(std::move(setup)) {}

  // A cgroup that was given nodes and is no longer wanted loses its limit.
  void apply(Wanted wanted);
  // Removes what is stored for cgroups that are gone, except where `expected` says that the cgroup
  // may come back.
  void forget_removed(const std::function<bool(const std::string& path)>& expected);

  // Whether another program changed one of them. Reads a file for each cgroup.
  bool drifted() const;
  const Counters& counters() const { return counters_; }

 private:
  void write(const std::string& path, NodeSet nodes);
  bool has(const std::string& path, NodeSet nodes) const;

  Setup setup_;
  Wanted applied_;
  std::set<std::string> written_paths_;  // paths ever written to
  Counters counters_;
};

}  // namespace headroom::daemon
