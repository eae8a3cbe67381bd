// SPDX-License-Identifier: Apache-2.0
// The CPU manager on a tree of plain files: a machine of eight CPUs, and a hand that writes what it
// is given, as the kernel would do.
#include "daemon/cpus/cpu_manager.h"

#include "judge/cpuset/cpuset_pods.h"
#include "support/fake_sysfs.h"
#include "support/make_again.h"

#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;
using Mode = config::CpusConfig::Mode;
using Policy = config::CpusConfig::Policy;

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

class Host : public testing::Test {
 protected:
  Host() {
    online("0-7");
    options_.cpus.mode = Mode::kEnforce;
    options_.cpus.policy = Policy::kStatic;
    options_.cpus.reserved = cpus("0");
    options_.cpus.state_file = dir_.path() / "state";
    make("");
    set("", "0-7");
    make("/kubepods");
    make("/kubepods/burstable");
    restart();
  }

  void online(const std::string& list) {
    sys_.list("online", list);
    for (int cpu = 0; cpu < 8; ++cpu)
      sys_.cpu({.cpu = cpu,
                .siblings = std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1)});
  }
  void make(const std::string& path) const {
    fs::create_directories(root().native() + path);
    std::ofstream(root().native() + path + "/cgroup.events") << "populated 1\n";
  }
  void set(const std::string& path, const std::string& list) const {
    std::ofstream(root().native() + path + "/cpuset.cpus.effective") << list << '\n';
  }
  // A pod's cgroup with one container's in it.
  void run(const std::string& uid) const {
    make("/kubepods/pod" + uid);
    make("/kubepods/pod" + uid + "/c");
  }
  void empty(const std::string& uid) const {
    std::ofstream(root().native() + "/kubepods/pod" + uid + "/cgroup.events") << "populated 0\n";
  }
  void end(const std::string& uid) const { fs::remove_all(root() / "kubepods" / ("pod" + uid)); }
  std::string runs_on(const std::string& path) const {
    const auto set = observe::cpus_of_cgroup(root(), path);
    return set ? set->format() : "gone";
  }

  void set_declared_pods(std::vector<Pod> pods) {
    pods_ = std::move(pods);
    manager_->set_declared_pods(pods_);
  }
  Pod pinned(const char* uid, const char* cpu) const {
    return pod_of(uid, {}, {container("c", cpu)});
  }
  void restart() {
    manager_.emplace(
        CpuManager::Setup{
            .cpusets = {.cgroup_root = root(),
                        .write = [this](const SeenCgroup& cgroup,
                                        const CpuSet& set) { return write(cgroup, set); },
                        .pause = [] {}},
            .remove_settings =
                [this](const std::string& path) { return forgotten_.insert(path), true; },
            .state_dir = state_dir_,
            .pods_cgroup = "kubepods",
            .sys = sys_.root(),
            .identify = [](std::string_view) { return nullptr; }},
        options_);
    manager_->set_declared_pods(pods_);
  }
  Result<> write(const SeenCgroup& cgroup, const CpuSet& cpus) {
    const std::string& path = cgroup.path;
    if (at_write_) at_write_(path);
    if (cgroup_id_at(root().native() + path) != cgroup.id) return failure("removed", ENOENT);
    EXPECT_TRUE(!cpus.empty() || options_.cpus.policy == Policy::kNone);
    writes_ += path + " " + cpus.format() + "\n";
    if (deaf_.contains(path)) return {};
    if (cpus.empty())
      fs::remove(root().native() + path + "/cpuset.cpus.effective");
    else
      set(path, cpus.format());
    return {};
  }
  std::string saved() const {
    std::ifstream file(options_.cpus.state_file);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const fs::path& root() const { return dir_.path(); }

  test::TempDir dir_;
  fs::path state_dir_ = dir_.path();
  test::FakeSysfs sys_;
  CpuManagerOptions options_;
  std::optional<CpuManager> manager_;
  std::vector<Pod> pods_;
  std::string writes_;
  std::set<std::string> deaf_, forgotten_;
  std::function<void(const std::string& path)> at_write_;  // before a cpuset is written
};

TEST_F(Host, WithoutExclusiveContainersNothingIsWritten) {
  manager_->reconcile();
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-7");
}

TEST_F(Host, APodGetsItsCpusAndOtherPodsLoseThem) {
  set_declared_pods({pinned("a", "2"), pod_of("b", {}, {container("c", "500m")})});
  run("a");
  run("b");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  EXPECT_EQ(runs_on("/kubepods/podb/c"), "0-1,4-7");
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-1,4-7");
  EXPECT_NE(saved().find(R"("defaultCpuSet":"0-1,4-7","entries":{"a":{"c":"2-3"}})"),
            std::string::npos)
      << saved();
  writes_.clear();
  manager_->reconcile();
  EXPECT_EQ(writes_, "") << "nothing changed";
}

// Between the read of the tree and the write.
TEST_F(Host, APodThatWasMadeAgainIsWrittenInTheNextPass) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  at_write_ = [this, made = false](const std::string& path) mutable {
    if (path != "/kubepods/poda" || std::exchange(made, true)) return;
    test::make_again(root() / "kubepods/poda");
  };
  manager_->reconcile();
  EXPECT_EQ(writes_.find("/kubepods/poda"), std::string::npos) << writes_;
  EXPECT_EQ(manager_->view().failed, 0U) << "it is no failure that the pod was removed";
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
}

TEST_F(Host, APodThatWasMadeAgainWasNotChangedByAnotherProgram) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  test::make_again(root() / "kubepods/poda");
  for (const char* path : {"/kubepods/poda", "/kubepods/poda/c"})
    set(path, "0-7");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  EXPECT_EQ(manager_->repaired(), 0U);
}

TEST_F(Host, CpusReturnToThePoolWhenThePodIsGone) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  end("a");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-7");
  EXPECT_TRUE(forgotten_.empty()) << "described, it may come back";
  set_declared_pods({});
  manager_->reconcile();
  EXPECT_TRUE(forgotten_.contains("/kubepods/poda"));
}

// systemd would start its unit again with them: the next daemon knows only its file.
TEST_F(Host, SettingsOfAPodThatEndedAfterACrashAreRemoved) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  end("a");
  set_declared_pods({});
  restart();
  manager_->reconcile();
  EXPECT_TRUE(forgotten_.contains("/kubepods/poda"));
  forgotten_.clear();
  restart();
  manager_->reconcile();
  EXPECT_FALSE(forgotten_.contains("/kubepods/poda")) << "once is enough";
}

TEST_F(Host, SettingsOfAPodThatIsStoppedAreRemovedWhenNothingIsAssignedAnyMore) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  end("a");
  manager_->reconcile();
  EXPECT_TRUE(forgotten_.empty()) << "described, it may come back";
  options_.cpus.policy = Policy::kNone;
  manager_->reconfigure(options_);
  manager_->reconcile();
  EXPECT_TRUE(forgotten_.contains("/kubepods/poda"));
  EXPECT_FALSE(fs::exists(act::cpuset_units_file(dir_.path()).path()));
}

// The state of a daemon that was killed, and whose assignments were lost.
TEST_F(Host, WhatWasWrittenIsReleasedWithoutTheStateFile) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  ASSERT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  fs::remove(options_.cpus.state_file);
  options_.cpus.policy = Policy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_NE(writes_.find("/kubepods/burstable \n"), std::string::npos) << writes_;
}

TEST_F(Host, LimitsAreRemovedAlsoWhereNothingCanBeSaved) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  state_dir_ = dir_.path() / "missing";
  options_.cpus.policy = Policy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_NE(writes_.find("/kubepods/burstable \n"), std::string::npos) << writes_;
}

TEST_F(Host, WhatIsNotInTheFileIsNotWritten) {
  state_dir_ = dir_.path() / "missing";
  restart();
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-7");
  fs::create_directory(state_dir_);
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
}

TEST_F(Host, ATerminatingPodIsNotWritten) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  set_declared_pods({});
  empty("a");
  writes_.clear();
  manager_->reconcile();
  EXPECT_EQ(writes_, "/kubepods/burstable 0-7\n");
}

TEST_F(Host, ContainersOfOnePodHaveSeparateCpus) {
  set_declared_pods(
      {pod_of("a", {}, {container("c", "2"), container("d", "1"), container("e", "500m")})});
  run("a");
  make("/kubepods/poda/d");
  make("/kubepods/poda/e");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  EXPECT_EQ(runs_on("/kubepods/poda/d"), "1");
  EXPECT_EQ(runs_on("/kubepods/poda/e"), "0,4-7");
}

TEST_F(Host, ExternalChangesAreRevertedAndCounted) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_FALSE(manager_->drifted());
  set("/kubepods/poda", "0-7");
  EXPECT_TRUE(manager_->drifted());
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3");
  EXPECT_EQ(manager_->repaired(), 2U) << "the pod and, in it, its container";
}

TEST_F(Host, ALostStateFileIsRebuiltFromRunningContainers) {
  set_declared_pods({pinned("a", "2"), pinned("b", "1")});
  run("a");
  run("b");
  manager_->reconcile();
  const std::string before = saved();
  for (const std::string text :
       {"", "{", "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-7\"}"}) {
    if (text.empty())
      fs::remove(options_.cpus.state_file);
    else
      std::ofstream(options_.cpus.state_file) << text;
    writes_.clear();
    restart();
    manager_->reconcile();
    EXPECT_EQ(saved(), before) << text;
    EXPECT_EQ(writes_, "") << "nothing was moved";
  }
  EXPECT_TRUE(fs::exists(options_.cpus.state_file.string() + ".damaged"));
}

TEST_F(Host, APodWithoutManifestKeepsItsCpus) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  pods_.clear();
  restart();
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3");
}

TEST_F(Host, InObserveModeNothingIsWritten) {
  options_.cpus.mode = Mode::kObserve;
  restart();
  std::ofstream(options_.cpus.state_file) << "{";
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(saved(), "{");
  ASSERT_EQ(manager_->view().containers.size(), 1U);
  EXPECT_EQ(manager_->view().containers[0].cpus.format(), "2-3") << "but it says what would be";
}

TEST_F(Host, APodThatNoLongerRequestsExclusiveCpusShares) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  set("/kubepods/poda/c", "2-3");
  set_declared_pods({pinned("a", "1500m")});
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "0-7");
}

TEST_F(Host, UnderThePolicyNoneAllCpusAreReleased) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  options_.cpus.policy = Policy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "0-7");
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-7");
  EXPECT_NE(saved().find(R"("policyName":"none")"), std::string::npos) << saved();
  writes_.clear();
  set("/kubepods/burstable", "1");
  manager_->reconcile();
  EXPECT_EQ(writes_, "") << "what others set then stays";
}

// Whether the daemon goes on or another one starts.
TEST_F(Host, WhatCannotBeReleasedStaysInTheFileAndIsTriedAgain) {
  for (const bool by_restart : {false, true}) {
    options_.cpus.policy = Policy::kStatic;
    set_declared_pods({pinned("a", "2")});
    run("a");
    restart();
    manager_->reconcile();
    const std::string assigned = saved();
    options_.cpus.policy = Policy::kNone;
    deaf_ = {"/kubepods/poda", "/kubepods/poda/c"};
    manager_->reconfigure(options_);
    manager_->reconcile();
    EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
    EXPECT_EQ(saved(), assigned);
    deaf_.clear();
    if (by_restart) restart();
    manager_->reconcile();
    EXPECT_EQ(runs_on("/kubepods/poda/c"), "0-7") << by_restart;
    EXPECT_NE(saved().find(R"("policyName":"none")"), std::string::npos) << saved();
  }
}

TEST_F(Host, ADaemonThatEndsWhileItReleasesHasTheRestInItsFile) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  const std::string assigned = saved();
  options_.cpus.policy = Policy::kNone;
  std::string at_writes;
  at_write_ = [&](const std::string&) { at_writes = saved(); };
  manager_->reconfigure(options_);
  manager_->reconcile();
  EXPECT_EQ(at_writes, assigned);
}

TEST_F(Host, ACpuThatIsUnpluggedIsReplaced) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  online("0-2,4-7");
  set("", "0-2,4-7");
  set("/kubepods/poda", "2");
  EXPECT_TRUE(manager_->drifted());
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "1-2") << "what is left of two cores";
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0,4-7");
  online("0-7");
  set("", "0-7");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0,3-7");
}

TEST_F(Host, IsolatedCpusAreExcludedIfConfigured) {
  sys_.list("isolated", "2-3");
  options_.cpus.exclude_isolated = true;
  restart();
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "4-5");
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-1,6-7");
}

// What kernels since 6.7 have in every cgroup.
TEST_F(Host, PodsWithOnlyExclusiveCpusAreIsolated) {
  const auto knob = [&](const std::string& path, const char* name) {
    return root().native() + path + "/cpuset.cpus." + name;
  };
  const auto text = [&](const std::string& path, const char* name) {
    std::ifstream file(knob(path, name));
    std::string line;
    std::getline(file, line);
    return line;
  };
  const auto give = [&](const std::string& path) {
    std::ofstream(knob(path, "partition")) << "member\n";
    std::ofstream(knob(path, "exclusive")) << "\n";
  };
  options_.cpus.partition = config::CpusConfig::Partition::kIsolated;
  restart();
  set_declared_pods(
      {pinned("a", "2"), pod_of("b", {}, {container("c", "2"), container("d", "500m")})});
  for (const char* uid : {"a", "b"}) {
    run(uid);
    give(std::string("/kubepods/pod") + uid);
  }
  give("/kubepods");
  manager_->reconcile();
  EXPECT_EQ(text("/kubepods/poda", "partition"), "isolated");
  EXPECT_EQ(text("/kubepods/poda", "exclusive"), "2-3");
  EXPECT_EQ(text("/kubepods", "exclusive"), "2-3");
  EXPECT_EQ(text("/kubepods/podb", "partition"), "member") << "one of its containers shares";
  ASSERT_EQ(manager_->view().containers.size(), 2U);
  EXPECT_EQ(manager_->view().containers[0].partition, "isolated");

  std::ofstream(knob("/kubepods/poda", "partition")) << "isolated invalid (by another)\n";
  EXPECT_TRUE(manager_->drifted());
  manager_->reconcile();
  EXPECT_EQ(text("/kubepods/poda", "partition"), "isolated");

  options_.cpus.partition = config::CpusConfig::Partition::kMember;
  restart();
  manager_->reconcile();
  EXPECT_EQ(text("/kubepods/poda", "partition"), "member");
  EXPECT_EQ(text("/kubepods/poda", "exclusive"), "");
  EXPECT_EQ(text("/kubepods", "exclusive"), "");
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
}

TEST_F(Host, WithoutPartitionSupportTheCpusAreStillExclusive) {
  options_.cpus.partition = config::CpusConfig::Partition::kIsolated;
  restart();
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3");
  ASSERT_EQ(manager_->view().containers.size(), 1U);
  EXPECT_NE(manager_->view().containers[0].partition.find("cpuset.cpus.partition: No such file"),
            std::string::npos);
  EXPECT_FALSE(manager_->drifted());
}

TEST_F(Host, AStuckCgroupIsWorkedAround) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  deaf_.insert("/kubepods/burstable");
  manager_->reconcile();
  EXPECT_EQ(manager_->view().failed, 1U);
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3");
  deaf_.clear();
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/burstable"), "0-1,4-7");
}

TEST_F(Host, ARefusedRequestIsLoggedOnce) {
  set_declared_pods({pinned("a", "20")});
  run("a");
  manager_->reconcile();
  manager_->reconcile();
  const report::CpusView view = manager_->view();
  ASSERT_EQ(view.containers.size(), 1U);
  EXPECT_EQ(view.containers[0].refusal,
            "UnexpectedAdmissionError: not enough cpus available to satisfy request: requested=20, "
            "available=7");
  EXPECT_EQ(view.topology_requests, 1U);
  EXPECT_EQ(view.topology_errors, 1U);
  EXPECT_EQ(view.pinning_requests, 1U);
  EXPECT_EQ(view.pinning_errors, 1U);
  EXPECT_EQ(runs_on("/kubepods/poda"), "0-7");
}

TEST_F(Host, AlignedAssignmentsAreCountedOnce) {
  options_.cpus.options.full_pcpus_only = true;
  options_.cpus.options.prefer_align_by_uncore = true;
  options_.cpus.topology_policy = TopologyPolicy::kSingleNumaNode;
  restart();
  set_declared_pods(
      {pod_of("a", {}, {container("c", "2"), container("d", "2")}), pinned("b", "3")});
  run("a");
  run("b");
  manager_->reconcile();
  manager_->reconcile();
  const report::CpusView view = manager_->view();
  EXPECT_EQ(view.topology_requests, 2U);
  EXPECT_EQ(view.topology_errors, 1U) << "no core has three threads";
  EXPECT_EQ(view.aligned.numa_node, 2U);
  EXPECT_EQ(view.aligned.numa_node_failed, 0U);
  EXPECT_EQ(view.aligned.physical_cpu, 2U);
  EXPECT_EQ(view.aligned.physical_cpu_failed, 1U);
  EXPECT_EQ(view.aligned.uncore_cache, 2U);
  options_.cpus.topology_scope = TopologyScope::kPod;
  restart();
  fs::remove(options_.cpus.state_file);
  manager_->reconcile();
  EXPECT_EQ(manager_->view().aligned.numa_node, 1U) << "one pod";
}

TEST_F(Host, AFullDiskLosesTheStateFileButNotThePinning) {
  options_.cpus.state_file = "/dev/full/state";
  restart();
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  EXPECT_TRUE(manager_->view().unsaved);
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3");
}

// A pod of a tier, with its cgroup.
Pod burstable(const char* uid, const char* cpu) {
  Pod pod = pod_of(uid, {}, {container("c", cpu)});
  pod.containers[0].limits.clear();
  return pod;
}

TEST_F(Host, CpusRequestedByTheSharedPoolAreNotAssigned) {
  const Pod shares = burstable("b", "3500m");
  set_declared_pods({shares, pinned("a", "4")});
  make("/kubepods/burstable/podb");
  run("a");
  manager_->reconcile();
  report::CpusView view = manager_->view();
  ASSERT_EQ(view.containers.size(), 1U);
  EXPECT_EQ(view.containers[0].refusal,
            "SharedPoolError: Shared Pool Error: requested CPUs = 4, the shared pool would be left "
            "with = 3, its pods requested = 3500m");
  EXPECT_EQ(runs_on("/kubepods/poda"), "0-7");
  EXPECT_EQ(view.pool, (SharedPool{{7000}, {7500}})) << "who is refused shares";
  EXPECT_EQ(view.pool_refusals, 1U);
  EXPECT_EQ(view.pinning_errors, 1U);

  fs::remove_all(root() / "kubepods/burstable/podb");
  manager_->reconcile();
  view = manager_->view();
  EXPECT_EQ(view.containers[0].cpus.size(), 4) << "described, but not here: it requests nothing";
  EXPECT_EQ(view.pool, (SharedPool{{3000}, {0}}));

  make("/kubepods/burstable/podb");
  make("/kubepods/burstable/podx");
  manager_->reconcile();
  view = manager_->view();
  EXPECT_EQ(view.containers[0].cpus.size(), 4) << "who came first stays";
  EXPECT_EQ(view.pool, (SharedPool{{3000}, {3500}}));
  EXPECT_TRUE(view.pool->is_short());
  EXPECT_EQ(view.pool_unknown, 1) << "podx has no pool";

  set_declared_pods({shares, pinned("a", "6")});
  manager_->reconcile();
  EXPECT_EQ(manager_->view().containers[0].cpus.size(), 4) << "no more for it";
  set_declared_pods({shares, pinned("a", "3")});
  manager_->reconcile();
  EXPECT_EQ(manager_->view().containers[0].cpus.size(), 4) << "no fewer than at its admission";
  fs::remove_all(root() / "kubepods/poda");
  manager_->reconcile();
  run("a");
  manager_->reconcile();
  EXPECT_EQ(manager_->view().containers[0].cpus.size(), 3) << "admitted anew";
  EXPECT_FALSE(manager_->view().pool->is_short());
}

TEST_F(Host, WithoutThePoolGuardAllCpusAreAssignedAsByAKubelet) {
  options_.cpus.guard_shared_pool = false;
  restart();
  set_declared_pods({burstable("b", "3500m"), pinned("a", "7")});
  make("/kubepods/burstable/podb");
  run("a");
  manager_->reconcile();
  const report::CpusView view = manager_->view();
  EXPECT_EQ(view.containers[0].cpus.size(), 7);
  EXPECT_EQ(view.pool, (SharedPool{{0}, {3500}}));
  EXPECT_FALSE(view.pool_limit_enforced);
}

TEST_F(Host, UnderThePolicyNoneThereIsNoPool) {
  options_.cpus.policy = Policy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_FALSE(manager_->view().pool);
}

// The kernel lets a cgroup run on no CPU that those above it have not.
TEST_F(Host, ASharingInitContainerAddsThePoolToItsPod) {
  set_declared_pods({pod_of("a", {container("i", "500m")}, {container("c", "2")})});
  run("a");
  make("/kubepods/poda/i");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "0-7") << "the pool and its own";
  EXPECT_EQ(runs_on("/kubepods/poda/i"), "0-1,4-7");
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  EXPECT_EQ(manager_->view().failed, 0U);
  fs::remove_all(root() / "kubepods/poda/i");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "2-3") << "it has finished";
}

TEST_F(Host, ASharingSidecarKeepsThePoolInItsPod) {
  set_declared_pods({pod_of("a", {container("s", "500m", true)}, {container("c", "2")})});
  run("a");
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda"), "0-7");
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
}

TEST_F(Host, AResizeKeepsTheCpusThatStay) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  ASSERT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  set_declared_pods({pinned("a", "3")});
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "1-3");
  set_declared_pods({pinned("a", "2")});
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
}

TEST_F(Host, NoResizeTakesCpusOfTheAdmission) {
  set_declared_pods({pinned("a", "2")});
  run("a");
  manager_->reconcile();
  set_declared_pods({pinned("a", "1")});
  manager_->reconcile();
  EXPECT_EQ(runs_on("/kubepods/poda/c"), "2-3");
  set_declared_pods({pinned("a", "4")});
  manager_->reconcile();
  EXPECT_EQ(CpuSet::parse(runs_on("/kubepods/poda/c"))->size(), 4);
  // The number of the admission outlives the daemon.
  restart();
  set_declared_pods({pinned("a", "1")});
  manager_->reconcile();
  EXPECT_EQ(CpuSet::parse(runs_on("/kubepods/poda/c"))->size(), 2);
  const report::CpusView view = manager_->view();
  ASSERT_EQ(view.containers.size(), 1U);
  EXPECT_EQ(view.containers[0].wanted, 1);
  EXPECT_EQ(view.containers[0].cpus.size(), 2);
}

TEST_F(Host, FragmentedCpusAreRepackedOnRequest) {
  std::ofstream(options_.cpus.state_file) << R"({"policyName":"static","defaultCpuSet":"0,3,5,7",)"
                                          << R"("entries":{"a":{"c":"1-2,4,6"}},"checksum":0})";
  set_declared_pods({pinned("a", "4")});
  run("a");
  manager_->reconcile();
  ASSERT_EQ(runs_on("/kubepods/poda/c"), "1-2,4,6");
  writes_.clear();
  const auto would = manager_->repack(true);
  ASSERT_TRUE(would) << would.error().what;
  EXPECT_EQ(writes_, "");
  EXPECT_EQ(would->moved_cpus, 2);
  const auto done = manager_->repack(false);
  ASSERT_TRUE(done) << done.error().what;
  ASSERT_EQ(done->containers.size(), 1U);
  EXPECT_EQ(done->containers[0].runs_on, done->containers[0].to);
  EXPECT_EQ(done->containers[0].before.cores, 4);
  EXPECT_EQ(done->containers[0].after.cores, 2);
  EXPECT_EQ(runs_on("/kubepods/poda/c"), done->containers[0].to.format());
  EXPECT_NE(saved().find(done->containers[0].to.format()), std::string::npos) << saved();
  EXPECT_EQ(manager_->view().repaired, 0U);
}

TEST_F(Host, InObserveModeRepackMovesNoContainer) {
  options_.cpus.mode = Mode::kObserve;
  restart();
  manager_->reconcile();
  EXPECT_TRUE(manager_->repack(true));
  EXPECT_EQ(manager_->repack(false).error().what, "mode observe moves no container: use --dry-run");
  options_.cpus.policy = Policy::kNone;
  restart();
  manager_->reconcile();
  EXPECT_EQ(manager_->repack(true).error().what,
            "cpuManagerPolicy is none: no container has exclusive CPUs");
}

}  // namespace
}  // namespace headroom::daemon
