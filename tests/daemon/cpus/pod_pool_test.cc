// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own under the gate PodLevelResourceManagers: what the cgroups get,
// what the state files keep, and what headroomctl shows.
#include "act/cpus/cpu_checkpoint.h"
#include "daemon/cpus/numa_host.h"

namespace headroom::daemon {
namespace {

class PodPoolHost : public NumaHost {
 protected:
  PodPoolHost() {
    options_.cpus.topology_scope = TopologyScope::kPod;
    options_.cpus.pod_level_managers = true;
    restart();
  }
  // `own` has one CPU and 1 GiB, `any` shares the rest.
  static Pod pool_pod(const char* uid, const char* cpu, std::int64_t memory) {
    Pod pod = pod_of(uid, {}, {container("own", "1"), {.name = "any"}});
    Container& own = pod.containers.front();
    own.requests["memory"] = own.limits["memory"] = Quantity::of(kGi);
    pod.pod_level = container("", cpu);
    pod.pod_level->requests["memory"] = pod.pod_level->limits["memory"] = Quantity::of(memory);
    return pod;
  }
  std::string cpus_of(const std::string& path) const {
    const auto set = observe::cpus_of_cgroup(root(), path);
    return set ? set->format() : "gone";
  }
  std::string nodes_of(const std::string& path) const {
    const auto nodes = observe::own_nodes_of_cgroup(root(), path);
    return nodes ? format_nodes(*nodes) : "gone";
  }
  CpuState saved_cpus() const {
    const auto loaded = act::CpuStateFile(options_.cpus.state_file).load();
    return loaded && *loaded ? (**loaded).state : CpuState();
  }
  void expect_pool() const {
    EXPECT_EQ(cpus_of("/kubepods/poda"), "1-3");
    EXPECT_EQ(cpus_of(unit_of("a", "own")), "1");
    EXPECT_EQ(cpus_of(unit_of("a", "any")), "2-3");
    for (const std::string& path :
         {std::string("/kubepods/poda"), unit_of("a", "own"), unit_of("a", "any")})
      EXPECT_EQ(nodes_of(path), "0") << path;
  }
};

TEST_F(PodPoolHost, ThePodsCgroupHasThePoolAndItsContainersDivideIt) {
  set_declared_pods({pool_pod("a", "3", 2 * kGi), guaranteed("b", "1", kGi)});
  run("a", {"own", "any"});
  run("b");
  manager_->reconcile();
  expect_pool();
  EXPECT_EQ(cpus("b"), "4") << "no CPU is left on node 0";
  EXPECT_EQ(saved_cpus().pod_entries.at("a").format(), "1-3");
  EXPECT_EQ(saved().version, act::MemoryCheckpointVersion::kV2);
  EXPECT_EQ(saved().state.pod_entries.at("a").at(0).size, Bytes{2 * kGi});
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{kGi});

  const report::CpusView shown = manager_->view();
  ASSERT_EQ(shown.containers.size(), 3U);
  EXPECT_EQ(shown.containers[0].container, "own");
  EXPECT_EQ(shown.containers[0].wanted, 1);
  EXPECT_FALSE(shown.containers[0].shares_in_pod);
  EXPECT_EQ(shown.containers[1].container, "any");
  EXPECT_EQ(shown.containers[1].cpus.format(), "2-3");
  EXPECT_TRUE(shown.containers[1].shares_in_pod);
  EXPECT_EQ(shown.pinning_requests, 2U) << "own, and the container of b";
  EXPECT_EQ(shown.topology_requests, 2U);

  writes_.clear();
  manager_->reconcile();
  expect_pool();
  EXPECT_EQ(writes_, "") << "nothing changed";
}

TEST_F(PodPoolHost, ARestartKeepsThePoolWithAndWithoutTheManifest) {
  set_declared_pods({pool_pod("a", "3", 2 * kGi)});
  run("a", {"own", "any"});
  manager_->reconcile();
  expect_pool();
  writes_.clear();
  restart();
  manager_->reconcile();
  expect_pool();
  EXPECT_EQ(writes_, "");
  set_declared_pods({});
  manager_->reconcile();
  expect_pool();
  EXPECT_EQ(saved_cpus().pod_entries.at("a").format(), "1-3");
  EXPECT_EQ(view().nodes.at(0).tables.at("memory").free, Bytes{kGi});
}

TEST_F(PodPoolHost, ALostFileIsReplacedByThePodsCgroup) {
  set_declared_pods({pool_pod("z", "1", kGi), pool_pod("a", "3", 2 * kGi)});
  run("a", {"own", "any"});
  for (const auto& [path, list] :
       {std::pair(std::string("/kubepods/poda"), "5-7"), std::pair(unit_of("a", "own"), "5"),
        std::pair(unit_of("a", "any"), "6-7")})
    write_line(path + "/cpuset.cpus.effective", list);
  manager_->reconcile();
  EXPECT_EQ(cpus_of("/kubepods/poda"), "5-7");
  EXPECT_EQ(cpus_of(unit_of("a", "any")), "6-7");
  EXPECT_EQ(nodes_of(unit_of("a", "any")), "1");
}

TEST_F(PodPoolHost, ByContainerOnlyTheGuaranteedOneHasCpus) {
  options_.cpus.topology_scope = TopologyScope::kContainer;
  options_.cpus.memory_policy = config::CpusConfig::MemoryManagerPolicy::kNone;
  restart();
  set_declared_pods({pool_pod("a", "3", 2 * kGi)});
  run("a", {"own", "any"});
  manager_->reconcile();
  EXPECT_EQ(cpus_of(unit_of("a", "own")), "1");
  EXPECT_EQ(cpus_of(unit_of("a", "any")), "0,2-7");
  EXPECT_TRUE(saved_cpus().pod_entries.empty());
}

// As in the kubelet of 1.36, a container that requests no memory is refused after one that has some
// on a single node.
TEST_F(PodPoolHost, ByContainerThePodsCgroupIsNotLimitedToTheNodesOfOneContainer) {
  options_.cpus.topology_scope = TopologyScope::kContainer;
  restart();
  Pod pod = pool_pod("a", "3", 2 * kGi);
  std::swap(pod.containers[0], pod.containers[1]);
  set_declared_pods({pod, pool_pod("b", "3", 2 * kGi)});
  run("a", {"own", "any"});
  run("b", {"own", "any"});
  manager_->reconcile();
  EXPECT_EQ(nodes_of(unit_of("b", "own")), "");
  EXPECT_EQ(view().containers.at(1).refusal,
            "UnexpectedAdmissionError: [memorymanager] preferred hint violates NUMA node "
            "allocation");
  EXPECT_EQ(nodes_of(unit_of("a", "own")), "0");
  EXPECT_EQ(nodes_of(unit_of("a", "any")), "");
  EXPECT_EQ(nodes_of("/kubepods/poda"), "");
}

TEST_F(PodPoolHost, GivesThePoolUpWhenTheGateIsTurnedOff) {
  set_declared_pods({pool_pod("a", "3", 2 * kGi)});
  run("a", {"own", "any"});
  manager_->reconcile();
  expect_pool();
  options_.cpus.pod_level_managers = false;
  reconfigure();
  EXPECT_EQ(cpus_of("/kubepods/poda"), "0-7");
  EXPECT_EQ(cpus_of(unit_of("a", "any")), "0-7");
  EXPECT_EQ(nodes_of(unit_of("a", "own")), "");
  EXPECT_TRUE(saved_cpus().pod_entries.empty());
  EXPECT_EQ(saved().version, act::MemoryCheckpointVersion::kV1);
}

TEST_F(PodPoolHost, APodWithNothingLeftToShareIsRefused) {
  set_declared_pods({pool_pod("a", "1", 2 * kGi)});
  run("a", {"own", "any"});
  manager_->reconcile();
  EXPECT_EQ(cpus_of(unit_of("a", "own")), "0-7");
  const report::CpusView shown = manager_->view();
  ASSERT_EQ(shown.containers.size(), 1U);
  EXPECT_EQ(shown.containers[0].refusal,
            "TopologyAffinityError: Pod Scope pod with pod-level resources failed admission under "
            "pod-scope topology manager");
  EXPECT_EQ(shown.pinning_errors, 1U);
}

}  // namespace
}  // namespace headroom::daemon
