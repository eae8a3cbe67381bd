// SPDX-License-Identifier: Apache-2.0
// The CPU and the memory manager on a tree of plain files: a machine of two NUMA nodes with four
// CPUs and 4 GiB each, and a hand that writes what it is given, as the kernel would do.
#pragma once

#include "act/memory/memory_checkpoint.h"
#include "daemon/cpus/cpu_manager.h"
#include "judge/cpuset/cpuset_pods.h"
#include "support/fake_sysfs.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {

namespace fs = std::filesystem;

inline constexpr std::int64_t kGi = std::int64_t{1} << 30;

class NumaHost : public testing::Test {
 protected:
  NumaHost() {
    sys_.list("online", "0-7");
    for (int cpu = 0; cpu < 8; ++cpu)
      sys_.cpu({.cpu = cpu, .siblings = std::to_string(cpu), .socket = cpu / 4});
    for (int node = 0; node < 2; ++node) {
      sys_.node(node, node == 0 ? "0-3" : "4-7", node == 0 ? "10 21" : "21 10");
      set_memory(node, 4 * kGi);
    }
    options_.cpus.mode = config::CpusConfig::Mode::kEnforce;
    options_.cpus.policy = config::CpusConfig::Policy::kStatic;
    options_.cpus.reserved = CpuSet{0};
    options_.cpus.guard_shared_pool = false;
    options_.cpus.topology_policy = TopologyPolicy::kRestricted;
    options_.cpus.state_file = dir_.path() / "cpu_manager_state";
    options_.cpus.memory_policy = config::CpusConfig::MemoryManagerPolicy::kStatic;
    options_.cpus.reserved_memory[0]["memory"] = Quantity::of(kGi);
    options_.cpus.memory_state_file = dir_.path() / "memory_manager_state";
    make("");
    write_line("/cpuset.cpus.effective", "0-7");
    write_line("/cpuset.mems.effective", "0-1");
    make("/kubepods");
    restart();
  }

  void set_memory(int node, std::int64_t bytes) const {
    const std::string number = std::to_string(node);
    sys_.write("devices/system/node/node" + number + "/meminfo",
               "Node " + number + " MemTotal:   " + std::to_string(bytes / 1024) + " kB");
  }
  const fs::path& root() const { return dir_.path(); }
  void write_line(const std::string& file, const std::string& line) const {
    std::ofstream(root().native() + file) << line << '\n';
  }
  void make(const std::string& path) const {
    fs::create_directories(root().native() + path);
    write_line(path + "/cgroup.events", "populated 1");
  }
  void run(const std::string& uid) const {
    make("/kubepods/pod" + uid);
    make("/kubepods/pod" + uid + "/c");
  }
  // A pod's cgroup with the units of these containers in it.
  void run(const std::string& uid, const std::vector<std::string>& containers) const {
    make("/kubepods/pod" + uid);
    for (const std::string& name : containers)
      make(unit_of(uid, name));
  }
  static std::string unit_of(const std::string& uid, const std::string& container) {
    return "/kubepods/pod" + uid + "/" + uid + "-" + container + ".service";
  }
  void end(const std::string& uid) const { fs::remove_all(root() / "kubepods" / ("pod" + uid)); }

  static Pod guaranteed(const char* uid, const char* cpu, std::int64_t memory) {
    Pod pod = pod_of(uid, {}, {container("c", cpu)});
    Container& only = pod.containers.front();
    only.requests["memory"] = only.limits["memory"] = Quantity::of(memory);
    return pod;
  }
  void set_declared_pods(std::vector<Pod> pods) {
    pods_ = std::move(pods);
    manager_->set_declared_pods(pods_);
  }
  void restart() {
    manager_.emplace(
        CpuManager::Setup{
            .cpusets = {.cgroup_root = root(),
                        .write = [this](const SeenCgroup& cgroup, const CpuSet& set) -> Result<> {
                          write_line(cgroup.path + "/cpuset.cpus.effective", set.format());
                          return {};
                        },
                        .pause = [] {}},
            .remove_settings = [this](const std::string& path) { return gone_.insert(path), true; },
            .state_dir = dir_.path(),
            .pods_cgroup = "kubepods",
            .sys = sys_.root(),
            .identify = [](std::string_view) { return nullptr; },
            .write_nodes = [this](const SeenCgroup& cgroup, NodeSet nodes) -> Result<> {
              const std::string& path = cgroup.path;
              if (at_write_) at_write_(path);
              if (cgroup_id_at(root().native() + path) != cgroup.id)
                return failure("removed", ENOENT);
              writes_ += path + " " + format_nodes(nodes) + "\n";
              if (!deaf_.contains(path)) write_line(path + "/cpuset.mems", format_nodes(nodes));
              return {};
            }},
        options_);
    manager_->set_declared_pods(pods_);
  }
  void reconfigure() {
    manager_->reconfigure(options_);
    manager_->reconcile();
  }

  // cpuset.mems of the pod's container.
  std::string mems(const std::string& uid) const {
    const auto nodes = observe::own_nodes_of_cgroup(root(), "/kubepods/pod" + uid + "/c");
    return nodes ? format_nodes(*nodes) : "gone";
  }
  std::string cpus(const std::string& uid) const {
    const auto set = observe::cpus_of_cgroup(root(), "/kubepods/pod" + uid + "/c");
    return set ? set->format() : "gone";
  }
  report::MemoryView view() const { return manager_->view().memory.value_or(report::MemoryView()); }
  act::MemoryCheckpoint saved() const {
    const auto loaded = act::MemoryStateFile(options_.cpus.memory_state_file).load();
    return loaded && *loaded ? **loaded : act::MemoryCheckpoint();
  }

  test::TempDir dir_;
  test::FakeSysfs sys_;
  CpuManagerOptions options_;
  std::optional<CpuManager> manager_;
  std::vector<Pod> pods_;
  std::string writes_;
  std::set<std::string> deaf_, gone_;
  std::function<void(const std::string& path)> at_write_;  // before cpuset.mems is written
};

}  // namespace headroom::daemon
