// SPDX-License-Identifier: Apache-2.0
// headroomctl advise reserves: the use of system cgroups read from recordings, and what is printed.
#include "ctl/advise/reserves.h"

#include <headroom/cgroup_record.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using recording::SystemCgroup;
using recording::SystemRole;
using recording::SystemUse;
using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr NamedPredictor kPercentile{"percentile", predict_percentile};

Instant at(int second) {
  return Instant(1h + std::chrono::seconds(second));
}

SystemCgroup cgroup(std::uint64_t id, const char* path, SystemRole role, std::uint64_t mib,
                    std::uint64_t tasks) {
  SystemCgroup made{.id = CgroupId{id}, .path = path, .role = role};
  made.record = unknown_record(id, 1);
  made.record.valid =
      HR_CPU | HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_PIDS | HR_MEMORY_EVENTS | HR_MEMORY_LIMITS;
  made.record.memory_usage = mib * kMiB, made.record.inactive_file = 0;
  made.record.memory_max = HR_NO_LIMIT;
  made.record.cpu_usage_ns = made.record.events_max = 0;
  made.record.pids_current = tasks;
  return made;
}

// A node of 8 GiB of which 4.5 GiB are in use, 0.5 GiB of them by the kernel: 3 GiB by pods.
struct RecordedNode {
  RecordedNode() {
    use.unaccounted_memory = 512 * kMiB;
    use.reserves.kube = {.milli_cpu = 100, .memory = 256 * kMiB, .ephemeral_storage = 1 << 30};
    use.cgroups = {cgroup(1, "/", SystemRole::kNode, 0, 0),
                   cgroup(2, "/kubepods.slice", SystemRole::kPods, 3072, 500),
                   cgroup(3, "/system.slice", SystemRole::kOther, 768, 150),
                   cgroup(4, "/system.slice/containerd.service", SystemRole::kKube, 200, 40),
                   cgroup(5, "/system.slice/kubelet.service", SystemRole::kKube, 300, 30),
                   cgroup(6, "/user.slice", SystemRole::kOther, 128, 10)};
    // Shares of a CPU, each with what is below it.
    cpu = {{1, 2.0}, {2, 1.0}, {3, 0.7}, {4, 0.2}, {5, 0.3}, {6, 0.1}};
    of(observations, Signal::kMemoryAvailable) = {
        .available = 4096 * static_cast<std::int64_t>(kMiB),
        .capacity = 8192 * static_cast<std::int64_t>(kMiB),
        .at = {}};
    of(observations, Signal::kPidAvailable) = {.available = 3200, .capacity = 4000, .at = {}};
  }
  SystemCgroup& find(std::uint64_t id) {
    return *std::ranges::find(use.cgroups, CgroupId{id}, &SystemCgroup::id);
  }
  void begin() {
    recording::TapeWriter::header(tape, {.version = "test"});
    writer.baseline(tape, at(0), Policy{}, History{}, 0);
  }
  void sweep(int second) {
    Snapshot snapshot;
    snapshot.at = use.at = at(second);
    snapshot.observations = observations;
    snapshot.cgroups.emplace();
    snapshot.pods = pods;
    writer.turn(tape, snapshot, {}, {});
    writer.system_use(tape, use);
    for (SystemCgroup& each : use.cgroups)
      each.record.cpu_usage_ns += static_cast<std::uint64_t>(1e9 * cpu[each.id.value]);
  }
  void record(int seconds) {
    begin();
    for (int second = 0; second <= seconds; ++second)
      sweep(second);
    end(seconds);
  }
  void end(int second) { writer.end(tape, at(second), 0); }

  SystemUse use;
  std::map<std::uint64_t, double> cpu;
  Observations observations;
  std::vector<PodReading> pods;
  std::string tape;
  recording::TapeWriter writer;
};

Result<> add(const std::string& tape, RecordedReserves& to) {
  auto reader = recording::TapeReader::open(tape);
  EXPECT_TRUE(reader);
  return add_recording(*reader, to);
}

RecordedReserves read(const std::string& tape) {
  RecordedReserves recorded;
  const auto added = add(tape, recorded);
  EXPECT_TRUE(added) << added.error().what;
  return recorded;
}

std::string error_of(const std::string& tape) {
  RecordedReserves recorded;
  const auto added = add(tape, recorded);
  return added ? "" : added.error().what;
}

double median(const std::vector<double>& series) {
  return percentile(series, 0.5).value_or(-1);
}

TEST(AdviseReserves, TheKubeletAndTheRuntimeAreOneReserveAndTheRestIsTheOther) {
  RecordedNode node;
  node.record(1800);
  const RecordedReserves found = read(node.tape);
  EXPECT_EQ(found.steps(), 30u);
  EXPECT_EQ(found.recorded, 1800s);
  const ReservedUse &kube = found.use[kKubeReserved], &system = found.use[kSystemReserved];
  EXPECT_EQ(median(kube.sum[kMemory]), 500.0 * kMiB);
  EXPECT_NEAR(median(kube.sum[kCpu]), 500, 0.001);
  EXPECT_EQ(median(kube.sum[kPids]), 70);
  EXPECT_EQ(kube.cgroups.size(), 2u);
  // 4.5 GiB without 3 GiB of the pods and 500 MiB.
  EXPECT_EQ(median(system.sum[kMemory]), (4608.0 - 3072 - 500) * kMiB);
  EXPECT_NEAR(median(system.sum[kCpu]), 500, 0.001);
  EXPECT_EQ(median(system.sum[kPids]), 800 - 500 - 70);
  // Each without what is below it.
  EXPECT_EQ(median(system.cgroups.at("/system.slice")[kMemory]), 268.0 * kMiB);
  EXPECT_EQ(median(system.cgroups.at("/user.slice")[kMemory]), 128.0 * kMiB);
  EXPECT_EQ(median(system.cgroups.at("/")[kMemory]), (4608.0 - 3072 - 768 - 128) * kMiB);
}

TEST(AdviseReserves, PrintsTheValuesTheEvidenceAndTheKeys) {
  RecordedNode node;
  node.record(1800);
  const auto advised = advise_reserves(read(node.tape), kPercentile);
  ASSERT_TRUE(advised);
  EXPECT_EQ(render_reserves(*advised, {}),
            "RESERVE         RESOURCE        RESERVED  MEDIAN   98 %   PEAK  TOO LOW\n"
            "kubeReserved    cpu         100m -> 550m    500m   500m   500m    0.0 %\n"
            "kubeReserved    memory    256Mi -> 550Mi   500Mi  500Mi  500Mi    0.0 %\n"
            "kubeReserved    pid              - -> 80      70     70     70    0.0 %\n"
            "systemReserved  cpu            - -> 550m    500m   500m   500m    0.0 %\n"
            "systemReserved  memory       - -> 1140Mi     1Gi    1Gi    1Gi    0.0 %\n"
            "systemReserved  pid             - -> 260     230    230    230    0.0 %\n"
            "\n"
            "30 samples of a minute in 30m; predictor percentile. In brackets: the highest memory "
            "use.\n"
            "kubeReserved: /system.slice/containerd.service (200Mi), /system.slice/kubelet.service "
            "(300Mi)\n"
            "systemReserved: the kernel and the root (640Mi), /system.slice (268Mi), /user.slice "
            "(128Mi)\n"
            "\n"
            "For the kubelet's configuration; nothing has been changed:\n"
            "\n" +
                reserves_yaml(*advised));
  EXPECT_EQ(reserves_yaml(*advised),
            "kubeReserved:\n"
            "  cpu: \"550m\"\n"
            "  memory: \"550Mi\"\n"
            "  pid: \"80\"\n"
            "  ephemeral-storage: \"1Gi\"\n"
            "systemReserved:\n"
            "  cpu: \"550m\"\n"
            "  memory: \"1140Mi\"\n"
            "  pid: \"260\"\n");
  const auto json = nlohmann::json::parse(reserves_json(*advised));
  EXPECT_EQ(json["samples"], 30);
  EXPECT_EQ(json["seconds"], 1800.0);
  EXPECT_EQ(json["predictor"], "percentile");
  const auto& memory = json["kubeReserved"]["memory"];
  EXPECT_EQ(memory["present"], "256Mi");
  EXPECT_EQ(memory["advised"], "550Mi");
  EXPECT_EQ(memory["differs"], true);
  EXPECT_EQ(memory["peak"], 500.0 * kMiB);
  EXPECT_EQ(memory["samples"], 30);
  EXPECT_EQ(json["systemReserved"]["cpu"]["present"], nullptr);
  EXPECT_NEAR(json["systemReserved"]["cpu"]["median"], 0.5, 1e-6);
  EXPECT_EQ(json["systemReserved"]["cgroups"],
            (std::vector<std::string>{"/", "/system.slice", "/user.slice"}));
}

TEST(AdviseReserves, APresentValueThatIsCloseStays) {
  RecordedNode node;
  node.use.reserves.kube.memory = 530 * kMiB;
  node.record(1800);
  const auto advised = advise_reserves(read(node.tape), kPercentile);
  ASSERT_TRUE(advised);
  EXPECT_NE(reserves_yaml(*advised).find("kubeReserved:\n  cpu: \"550m\"\n  memory: \"530Mi\"\n"),
            std::string::npos);
}

TEST(AdviseReserves, RecordingsOfOneNodeAreOne) {
  RecordedNode morning, evening;
  morning.record(600);
  evening.use.reserves.kube.memory = 1024 * kMiB;
  evening.find(5).record.memory_usage = 900 * kMiB;
  evening.find(3).record.memory_usage = 1368 * kMiB;
  evening.record(600);
  RecordedReserves found;
  ASSERT_TRUE(add(morning.tape, found));
  const auto alone = advise_reserves(found, kPercentile);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().what,
            "too little is recorded to advise from: 10 samples of a minute in 10m, and 15 are "
            "needed");
  ASSERT_TRUE(add(evening.tape, found));
  EXPECT_EQ(found.steps(), 20u);
  EXPECT_EQ(found.recorded, 1200s);
  EXPECT_EQ(found.present.kube.memory, 1024 * kMiB) << "of the last";
  const auto advised = advise_reserves(found, kPercentile);
  ASSERT_TRUE(advised);
  EXPECT_EQ(advised->advice[kKubeReserved][kMemory]->peak, 1100.0 * kMiB);
}

TEST(AdviseReserves, WithoutACgroupOfTheKubeletItsUseIsTheSystems) {
  RecordedNode node;
  std::erase_if(node.use.cgroups,
                [](const SystemCgroup& each) { return each.role == SystemRole::kKube; });
  node.record(1800);
  const auto advised = advise_reserves(read(node.tape), kPercentile);
  ASSERT_TRUE(advised);
  EXPECT_EQ(advised->advice[kSystemReserved][kMemory]->median, (4608.0 - 3072) * kMiB);
  EXPECT_FALSE(advised->advice[kKubeReserved][kMemory]);
  const std::string text = render_reserves(*advised, {});
  EXPECT_NE(text.find("kubeReserved: the recording has no cgroup of a kubelet"), std::string::npos);
  EXPECT_EQ(reserves_yaml(*advised).find("kubeReserved"), std::string::npos)
      << "what it is for would be reserved twice";
}

TEST(AdviseReserves, WhatIsMissingInARecordingIsAnError) {
  std::string older;
  recording::TapeWriter::header(older, {.version = "test"});
  EXPECT_EQ(error_of(older),
            "the recording has no use of system cgroups; headroomd records it since format 10 of "
            "recordings");
  RecordedNode node;
  std::erase_if(node.use.cgroups,
                [](const SystemCgroup& each) { return each.role == SystemRole::kPods; });
  const auto pod = std::make_shared<Pod>();
  node.pods = {{.pod = pod, .cgroup = CgroupId{9}, .record = nullptr, .memory_request = {}}};
  node.record(60);
  EXPECT_EQ(error_of(node.tape),
            "the recording has pods, and no cgroup of all pods: is podsCgroup of headroomd right?");
}

TEST(AdviseReserves, NodesOfOtherSizesAreNotOne) {
  RecordedNode first, second;
  first.record(60);
  of(second.observations, Signal::kMemoryAvailable)->capacity *= 2;
  second.record(60);
  RecordedReserves found;
  ASSERT_TRUE(add(first.tape, found));
  const auto added = add(second.tape, found);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().what,
            "the node has another amount of memory than that of the recordings before it");
}

TEST(AdviseReserves, UnknownUseOfThePodsIsNotCountedAsTheSystems) {
  RecordedNode node;
  node.find(2).record.valid &= ~HR_MEMORY_STAT;
  node.record(1800);
  const auto advised = advise_reserves(read(node.tape), kPercentile);
  ASSERT_TRUE(advised) << "by the CPU";
  EXPECT_FALSE(advised->advice[kSystemReserved][kMemory]);
  EXPECT_TRUE(advised->advice[kSystemReserved][kCpu]);
  EXPECT_EQ(reserves_yaml(*advised).find("1140Mi"), std::string::npos);
}

TEST(AdviseReserves, ARestartedServiceIsTheSameOneAndAGapIsLeftOut) {
  RecordedNode node;
  node.begin();
  for (int second = 0; second <= 600; ++second)
    node.sweep(second);
  node.find(5).id = CgroupId{50};  // its CPU time begins anew
  node.cpu[50] = node.cpu[5];
  node.find(50).record.cpu_usage_ns = 0;
  for (int second = 4000; second <= 4600; ++second)
    node.sweep(second);
  node.end(4600);
  const RecordedReserves found = read(node.tape);
  EXPECT_EQ(found.use[kKubeReserved].cgroups.size(), 2u);
  EXPECT_EQ(found.steps(), 20u) << "not the 57 minutes between";
  EXPECT_NEAR(percentile(found.use[kKubeReserved].sum[kCpu], 1).value(), 500, 0.001);
  EXPECT_NEAR(percentile(found.use[kKubeReserved].sum[kCpu], 0).value(), 500, 0.001);
}

TEST(AdviseReserves, AtALimitOfItsOwnTheReserveGrows) {
  RecordedNode node;
  node.use.reserves.kube.memory = 500 * kMiB;
  node.find(5).record.memory_max = 300 * kMiB;
  node.begin();
  for (int second = 0; second <= 1800; ++second) {
    node.sweep(second);
    if (second % 600 == 599) ++node.find(5).record.events_max;
  }
  node.end(1800);
  const auto advised = advise_reserves(read(node.tape), kPercentile);
  ASSERT_TRUE(advised);
  EXPECT_EQ(advised->recorded.use[kKubeReserved].limit_hits, 3u);
  EXPECT_EQ(advised->advice[kKubeReserved][kMemory]->wanted, 600.0 * kMiB);
  EXPECT_NE(render_reserves(*advised, {}).find("3 times at their limits"), std::string::npos);
}

}  // namespace
}  // namespace headroom::ctl
