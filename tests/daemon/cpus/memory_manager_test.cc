// SPDX-License-Identifier: Apache-2.0
// The memory manager: cpuset.mems, the state file, and what headroomctl shows.
#include "act/memory/memory_checkpoint.h"
#include "daemon/cpus/cpu_manager.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/cpus/numa_host.h"
#include "support/make_again.h"

#include <fstream>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using Mode = config::CpusConfig::Mode;
using Policy = config::CpusConfig::Policy;
using MemoryManagerPolicy = config::CpusConfig::MemoryManagerPolicy;

// Node 0 has 3 GiB for pods, node 1 has 4.
TEST_F(NumaHost, APodGetsCpusAndMemoryOfTheSameNode) {
  set_declared_pods({guaranteed("a", "2", 2 * kGi), guaranteed("b", "2", 2 * kGi)});
  run("a");
  run("b");
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
  EXPECT_EQ(cpus("a"), "1-2");
  EXPECT_EQ(mems("b"), "1") << "1 GiB is left on node 0";
  EXPECT_EQ(cpus("b"), "4-5") << "one CPU is left on node 0, and its memory is on node 1";
  EXPECT_EQ(saved().policy, "Static");
  EXPECT_EQ(memory_nodes(saved().state, "b", "c"), NodeSet::of(1));
  EXPECT_EQ(view().pinning_requests, 2u);
  EXPECT_EQ(view().pinning_errors, 0u);
  writes_.clear();
  manager_->reconcile();
  EXPECT_EQ(writes_, "") << "nothing changed";
}

TEST_F(NumaHost, MemoryDecidesWhereTheCpusAre) {
  set_declared_pods({guaranteed("big", "1", 3 * kGi + 1)});
  run("big");
  manager_->reconcile();
  EXPECT_EQ(mems("big"), "1") << "node 0 has too little";
  EXPECT_EQ(cpus("big"), "4");
}

TEST_F(NumaHost, APodWhoseMemoryCannotBeHadGetsNoCpusEither) {
  options_.cpus.topology_policy = TopologyPolicy::kNone;
  restart();
  set_declared_pods({guaranteed("a", "2", 8 * kGi)});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "");
  EXPECT_EQ(cpus("a"), "0-7") << "the shared pool";
  const report::MemoryView refused = view();
  ASSERT_EQ(refused.containers.size(), 1u);
  EXPECT_NE(refused.containers[0].refusal.find("UnexpectedAdmissionError"), std::string::npos)
      << refused.containers[0].refusal;
  EXPECT_EQ(refused.pinning_requests, 1u);
  EXPECT_EQ(refused.pinning_errors, 1u);
  manager_->reconcile();
  EXPECT_EQ(view().pinning_errors, 1u) << "a refused pod is counted once";
}

TEST_F(NumaHost, MemoryIsAssignedWithoutACpuManager) {
  options_.cpus.policy = Policy::kNone;
  restart();
  set_declared_pods({guaranteed("a", "100m", 2 * kGi)});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
  EXPECT_EQ(view().policy, "Static");
}

TEST_F(NumaHost, MemoryBecomesFreeWhenThePodIsGone) {
  set_declared_pods({guaranteed("a", "1", 3 * kGi)});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{});
  end("a");
  set_declared_pods({});
  manager_->reconcile();
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{3 * kGi});
  EXPECT_TRUE(saved().state.entries.empty());
  EXPECT_TRUE(gone_.contains("/kubepods/poda/c")) << "its unit's settings are removed";
}

TEST_F(NumaHost, AChangedCpusetMemsIsRestored) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  write_line("/kubepods/poda/c/cpuset.mems", "0-1");
  EXPECT_TRUE(manager_->drifted());
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
  EXPECT_EQ(view().repaired, 1u);
  EXPECT_FALSE(manager_->drifted());
}

TEST_F(NumaHost, APodThatWasMadeAgainIsWrittenInTheNextPass) {
  set_declared_pods({guaranteed("a", "2", 2 * kGi)});
  run("a");
  at_write_ = [this, made = false](const std::string&) mutable {
    if (!std::exchange(made, true)) test::make_again(root() / "kubepods/poda");
  };
  manager_->reconcile();
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(view().failed, 0u);
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
}

// Its nodes are not those of the pod before it, which has no memory of its own any more.
TEST_F(NumaHost, APodThatWasMadeAgainKeepsWhatAnotherProgramSet) {
  set_declared_pods({guaranteed("a", "2", 2 * kGi)});
  run("a");
  manager_->reconcile();
  ASSERT_EQ(mems("a"), "0");
  test::make_again(root() / "kubepods/poda");
  write_line("/kubepods/poda/c/cpuset.mems", "1");
  set_declared_pods({});
  write_line("/kubepods/poda/cgroup.events", "populated 0");
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "1");
  EXPECT_EQ(view().failed, 0u) << "nothing was to be written";
}

TEST_F(NumaHost, AWriteWithoutEffectIsCounted) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  deaf_.insert("/kubepods/poda/c");
  manager_->reconcile();
  EXPECT_EQ(view().failed, 1u);
}

TEST_F(NumaHost, ARestartKeepsTheNodes) {
  set_declared_pods({guaranteed("a", "1", 3 * kGi), guaranteed("b", "1", kGi)});
  run("a");
  run("b");
  manager_->reconcile();
  ASSERT_EQ(mems("b"), "1");
  writes_.clear();
  restart();
  manager_->reconcile();
  EXPECT_EQ(mems("b"), "1");
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(view().pinning_requests, 0u);
}

// Without the file the containers' cpuset.mems say where they are.
TEST_F(NumaHost, ALostOrDamagedFileCostsNoPodItsNodes) {
  for (const char* const damage : {"", "{", R"({"policyName":"Static","checksum":1})"}) {
    set_declared_pods({guaranteed("a", "1", 3 * kGi), guaranteed("b", "1", kGi)});
    run("a");
    run("b");
    manager_->reconcile();
    ASSERT_EQ(mems("b"), "1");
    end("a");  // node 0 is free: a new assignment would take it
    fs::remove(options_.cpus.memory_state_file);
    if (*damage) std::ofstream(options_.cpus.memory_state_file) << damage;
    restart();
    set_declared_pods({pods_[1]});
    writes_.clear();
    manager_->reconcile();
    EXPECT_EQ(mems("b"), "1") << damage;
    EXPECT_EQ(writes_, "") << damage;
    EXPECT_EQ(memory_nodes(saved().state, "b", "c"), NodeSet::of(1)) << damage;
    EXPECT_EQ(fs::exists(options_.cpus.memory_state_file.native() + ".damaged"), *damage != 0);
    fs::remove(options_.cpus.memory_state_file.native() + ".damaged");
  }
}

// A kubelet would refuse to start on such a file.
TEST_F(NumaHost, AFileOfAnotherReservationIsRepaired) {
  set_declared_pods({guaranteed("a", "1", 2 * kGi)});
  run("a");
  manager_->reconcile();
  options_.cpus.reserved_memory[1]["memory"] = Quantity::of(2 * kGi);
  restart();
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
  EXPECT_EQ(saved().state.machine.at(1).tables.at("memory").allocatable, Bytes{2 * kGi});
}

TEST_F(NumaHost, HugePagesThatAreReservedLaterCount) {
  set_declared_pods({guaranteed("a", "1", 2 * kGi)});
  run("a");
  manager_->reconcile();
  sys_.write("devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "512");
  Pod huge = guaranteed("h", "1", kGi);
  for (ResourceList* const list :
       {&huge.containers.front().requests, &huge.containers.front().limits})
    list->emplace("hugepages-2Mi", Quantity::of(kGi));
  set_declared_pods({pods_[0], huge});
  run("h");
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0") << "as before";
  EXPECT_EQ(mems("h"), "1") << "only node 1 has huge pages";
  EXPECT_EQ(view().nodes.at(1).tables.at("memory").allocatable, Bytes{3 * kGi});
}

TEST_F(NumaHost, APodWithoutAManifestKeepsItsNodes) {
  set_declared_pods({guaranteed("a", "1", 3 * kGi), guaranteed("b", "1", kGi)});
  run("a");
  run("b");
  manager_->reconcile();
  set_declared_pods({});
  restart();
  manager_->reconcile();
  EXPECT_EQ(mems("a"), "0");
  EXPECT_EQ(mems("b"), "1");
  EXPECT_EQ(memory_nodes(saved().state, "b", "c"), NodeSet::of(1));
}

TEST_F(NumaHost, ThePolicyNoneTakesTheLimitsBack) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  for (const bool by_restart : {false, true}) {
    options_.cpus.memory_policy = MemoryManagerPolicy::kStatic;
    run("a");
    reconfigure();
    ASSERT_EQ(mems("a"), "0");
    options_.cpus.memory_policy = MemoryManagerPolicy::kNone;
    if (by_restart) restart();
    reconfigure();
    EXPECT_EQ(mems("a"), "") << by_restart;
    EXPECT_FALSE(manager_->view().memory);
    EXPECT_EQ(saved().policy, "None");
  }
}

// Whether the daemon goes on or another one starts.
TEST_F(NumaHost, WhatCannotBeReleasedStaysInTheFileAndIsTriedAgain) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  for (const bool by_restart : {false, true}) {
    options_.cpus.memory_policy = MemoryManagerPolicy::kStatic;
    run("a");
    reconfigure();
    const act::MemoryCheckpoint assigned = saved();
    options_.cpus.memory_policy = MemoryManagerPolicy::kNone;
    deaf_ = {"/kubepods/poda/c"};
    reconfigure();
    EXPECT_EQ(mems("a"), "0");
    EXPECT_EQ(saved(), assigned);
    deaf_.clear();
    if (by_restart) restart();
    manager_->reconcile();
    EXPECT_EQ(mems("a"), "") << by_restart;
    EXPECT_EQ(saved().policy, "None");
  }
}

TEST_F(NumaHost, ADaemonThatEndsWhileItReleasesHasTheRestInItsFile) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  const act::MemoryCheckpoint assigned = saved();
  options_.cpus.memory_policy = MemoryManagerPolicy::kNone;
  act::MemoryCheckpoint at_write;
  at_write_ = [&](const std::string&) { at_write = saved(); };
  reconfigure();
  EXPECT_EQ(at_write, assigned);
}

// As Linux 6.12 leaves it where there are processes.
TEST_F(NumaHost, AllNodesAreReleased) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  at_write_ = [this](const std::string& path) { deaf_.insert(path); };
  write_line("/kubepods/poda/cpuset.mems", "0-1");
  write_line("/kubepods/poda/c/cpuset.mems", "0-1");
  options_.cpus.memory_policy = MemoryManagerPolicy::kNone;
  reconfigure();
  EXPECT_EQ(saved().policy, "None");
}

TEST_F(NumaHost, OnAMachineOfOneNodeNothingIsWrittenTwice) {
  write_line("/cpuset.mems.effective", "0");
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  ASSERT_EQ(mems("a"), "0");
  writes_.clear();
  manager_->reconcile();
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(view().failed, 0U);
}

TEST_F(NumaHost, AReloadFromObserveToEnforceAssigns) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  options_.cpus.mode = Mode::kObserve;
  reconfigure();
  EXPECT_EQ(mems("a"), "") << "released";
  EXPECT_EQ(view().containers.at(0).blocks.at(0).nodes, NodeSet::of(0)) << "what would be";
  options_.cpus.mode = Mode::kEnforce;
  reconfigure();
  EXPECT_EQ(mems("a"), "0");
}

// Of a kubelet: only shown, until its configuration says that headroomd assigns.
TEST_F(NumaHost, AFileThatWasReadInModeObserveIsNotReadInModeEnforce) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  const MemoryState other = saved().state;
  options_.cpus.mode = Mode::kObserve;
  options_.cpus.memory_state_file = dir_.path() / "kubelet_state";
  ASSERT_TRUE(act::MemoryStateFile(options_.cpus.memory_state_file).save("Static", other));
  reconfigure();
  EXPECT_EQ(mems("a"), "");
  options_.cpus.mode = Mode::kEnforce;
  reconfigure();
  EXPECT_EQ(mems("a"), "0");
}

TEST_F(NumaHost, AFileWithoutAssignmentsIsOfThePolicyNoneAfterwards) {
  manager_->reconcile();
  ASSERT_EQ(saved().policy, "Static");
  options_.cpus.memory_policy = MemoryManagerPolicy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_EQ(saved().policy, "None");
}

TEST_F(NumaHost, MemoryOfAFinishedInitContainerBecomesFree) {
  Pod pod = guaranteed("a", "1", kGi);
  Container init = pod.containers.front();
  init.name = "i";
  init.requests["memory"] = init.limits["memory"] = Quantity::of(3 * kGi);
  pod.init_containers.push_back(init);
  set_declared_pods({pod});
  make("/kubepods/poda");
  manager_->reconcile();
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{}) << "the init container has it";
  make("/kubepods/poda/a-c.service");
  manager_->reconcile();
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{2 * kGi});
  manager_->reconcile();
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{2 * kGi})
      << "and is not served again";
}

// Beside a kubelet: what its file says, and nothing else.
TEST_F(NumaHost, ObserveShowsTheFileOfAKubelet) {
  set_declared_pods({guaranteed("a", "1", kGi)});
  run("a");
  manager_->reconcile();
  act::MemoryCheckpoint other = saved();
  other.state =
      MemoryPolicy({{0, {.memory = Bytes{4 * kGi}}}, {1, {.memory = Bytes{4 * kGi}}}},
                   options_.cpus.reserved_memory)
          .allocate(MemoryPolicy({{0, {.memory = Bytes{4 * kGi}}}, {1, {.memory = Bytes{4 * kGi}}}},
                                 options_.cpus.reserved_memory)
                        .initial(),
                    pods_[0], pods_[0].containers[0], {NodeSet::of(1), true})
          .value();
  options_.cpus.mode = Mode::kObserve;
  options_.cpus.memory_state_file = dir_.path() / "kubelet_state";
  ASSERT_TRUE(act::MemoryStateFile(options_.cpus.memory_state_file).save("Static", other.state));
  writes_.clear();
  restart();
  set_declared_pods({pods_[0], guaranteed("b", "1", kGi)});
  run("b");
  manager_->reconcile();
  ASSERT_EQ(view().containers.size(), 2u);
  EXPECT_EQ(view().containers[0].blocks[0].nodes, NodeSet::of(1));
  EXPECT_TRUE(view().containers[1].blocks.empty()) << "the kubelet has not assigned any";
  EXPECT_EQ(writes_, "");
  ASSERT_TRUE(act::MemoryStateFile(options_.cpus.memory_state_file).save("Static", {}));
  manager_->reconcile();
  EXPECT_TRUE(view().containers[0].blocks.empty()) << "read again";
}

TEST_F(NumaHost, ContainersAreNotMovedAwayFromTheirMemory) {
  manager_->reconcile();
  EXPECT_EQ(manager_->repack(/*dry_run=*/true).error().what,
            "memoryManagerPolicy is Static: containers stay on the NUMA nodes of their memory");
}

// Everything that is wrong with the configuration on this machine, at once.
TEST(MemoryConfigErrors, ComparesTheReservationsWithNodeAllocatable) {
  const MemorySizes sizes{{0, {.memory = Bytes{4 * kGi}}}, {1, {.memory = Bytes{4 * kGi}}}};
  Amounts capacity;
  capacity.memory = Bytes{8 * kGi};
  config::Config config;
  config.policy.thresholds = {{.signal = Signal::kMemoryAvailable, .value = Quantity::of(kGi / 2)}};
  config.reserved.kube.amounts.memory = Bytes{kGi};
  config.reserved.system.amounts.memory = Bytes{kGi / 2};
  config.cpus.reserved_memory[0]["memory"] = Quantity::of(kGi);
  config.cpus.reserved_memory[1]["memory"] = Quantity::of(kGi);
  EXPECT_TRUE(memory_config_errors(config, capacity, sizes).empty());
  config.cpus.reserved_memory[2]["hugepages-2Mi"] = Quantity::of(2 << 20);
  config.cpus.reserved_memory[1].clear();
  const config::Diagnostics diagnostics = memory_config_errors(config, capacity, sizes);
  ASSERT_EQ(diagnostics.size(), 3u);
  EXPECT_NE(diagnostics[0].what.find("NUMA node 2"), std::string::npos) << diagnostics[0].what;
  EXPECT_NE(diagnostics[1].what.find("hugepages-2Mi"), std::string::npos) << diagnostics[1].what;
  EXPECT_NE(diagnostics[2].what.find(R"("2Gi")"), std::string::npos) << diagnostics[2].what;
}

}  // namespace
}  // namespace headroom::daemon
