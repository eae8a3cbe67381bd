// SPDX-License-Identifier: Apache-2.0
// The Summary API read as a client of the kubelet would.
#include "report/summary/summary.h"

#include "config/temp_dir.h"
#include "report/sample.h"
#include "report/summary/stats_json.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::json;

std::string text_of(ResponseBody& body) {
  std::string text, room(1000, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

class SummaryTest : public ::testing::Test {
 protected:
  SummaryTest() {
    NodeView node = sample_node();
    of(node.observations, Signal::kNodeFsAvailable) = Observation{600, 1000, node.at};
    of(node.observations, Signal::kNodeFsInodesFree) = Observation{70, 100, node.at};
    of(node.observations, Signal::kImageFsAvailable) = Observation{5, 50, node.at};
    of(node.observations, Signal::kPidAvailable) = Observation{32'000, 32'768, node.at};
    setup_.views->node.publish([&](NodeView& next, const NodeView*) { next = node; });
    publish(sample_cgroups());
  }
  void publish(const CgroupTable& table) {
    setup_.views->cgroups.publish([&](CgroupTable& next, const CgroupTable*) { next = table; });
  }
  Json get(bool cpu_and_memory = false) {
    SummaryBody summary(setup_, cpu_and_memory);
    const std::string text = text_of(summary);
    Json json = Json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json;
  }
  Json pod(const Json& summary, const std::string& name) {
    for (const Json& each : summary["pods"])
      if (each["podRef"]["name"] == name) return each;
    ADD_FAILURE() << "no pod " << name << " in " << summary.dump(1);
    return {};
  }

  SummarySetup setup_{
      .views = std::make_shared<PublishedViews>(),
      .node_name = "node-1",
      .system_containers = {{"kubelet", {"/kube.slice"}},
                            {"pods", {"/kubepods", "/kubepods.slice"}}},
      // The sample's instants, as if the machine had started with 2026.
      .wall_time = [](Instant at) {
        return WallTime(std::chrono::seconds(1'767'225'600) + at.time_since_epoch());
      }};
};

TEST_F(SummaryTest, APodHasItsReferenceItsContainersAndItsUse) {
  const Json hog = pod(get(), "hog");
  EXPECT_EQ(hog["podRef"], Json({{"name", "hog"}, {"namespace", "default"}, {"uid", "uid-hog"}}));
  EXPECT_EQ(hog["startTime"], "2026-01-01T00:00:03Z");
  ASSERT_EQ(hog["containers"].size(), 1u);
  EXPECT_EQ(hog["containers"][0]["name"], "app");
  EXPECT_EQ(hog["containers"][0]["startTime"], "2026-01-01T00:00:04Z");

  const hr_record record = full_record(3, 2);
  EXPECT_EQ(hog["cpu"]["time"], "2026-01-01T00:00:09Z");
  EXPECT_EQ(hog["cpu"]["usageCoreNanoSeconds"], record.cpu_usage_ns);
  EXPECT_FALSE(hog["cpu"].contains("usageNanoCores")) << "one reading makes no rate";
  EXPECT_EQ(hog["cpu"]["psi"]["some"]["total"], record.psi_ns[HR_PSI_CPU][HR_PSI_SOME] / 1000);
  EXPECT_EQ(hog["memory"]["usageBytes"], record.memory_usage);
  EXPECT_EQ(hog["memory"]["workingSetBytes"], record.memory_usage - record.inactive_file);
  EXPECT_EQ(hog["memory"]["rssBytes"], record.anon);
  EXPECT_EQ(hog["memory"]["availableBytes"],
            record.memory_max - (record.memory_usage - record.inactive_file));
  EXPECT_EQ(hog["io"]["psi"]["full"]["total"], record.psi_ns[HR_PSI_IO][HR_PSI_FULL] / 1000);
  EXPECT_EQ(hog["swap"]["swapUsageBytes"], record.swap_usage);
}

// The sample's hog has one container, at .../app.service.
TEST_F(SummaryTest, ProcessesAreThoseOfTheContainersAndBelow) {
  const TempDir root;
  const auto write = [&](const std::string& cgroup, const std::string& pids) {
    const auto path = std::filesystem::path("kubepods.slice/kubepods-poduid_hog.slice") / cgroup;
    std::filesystem::create_directories(root.path() / path);
    root.write((path / "cgroup.procs").string(), pids);
  };
  EXPECT_FALSE(pod(get(), "hog").contains("process_stats")) << "nothing reads them";
  setup_.host = std::make_shared<const HostReaders>(
      HostReaders{.network = NetworkReader(root.path(), root.path()),
                  .processes = ProcessReader(root.path(), root.path()),
                  .filesystems = FilesystemSpaces({})});
  EXPECT_FALSE(pod(get(), "hog").contains("process_stats")) << "the cgroup is gone";
  write("app.service", "7\n8\n9\n");
  EXPECT_EQ(pod(get(), "hog")["process_stats"]["process_count"], 3);
}

TEST_F(SummaryTest, WhatIsNotKnownIsNotThere) {
  const Json summary = get();
  const Json quiet = pod(summary, "quiet");
  for (const char* field : {"cpu", "memory", "io", "swap", "process_stats"})
    EXPECT_FALSE(quiet.contains(field)) << field;
  EXPECT_TRUE(quiet["containers"].empty());
  const Json web = pod(summary, "web");
  EXPECT_FALSE(web["memory"].contains("availableBytes")) << "it has no limit";
  EXPECT_FALSE(web["memory"].contains("psi"));
  EXPECT_FALSE(summary["node"]["runtime"].contains("containerFs"));
}

TEST_F(SummaryTest, CpuOverTwoReadingsIsARate) {
  // Half a CPU over two seconds.
  CgroupTable before = sample_cgroups(), after;
  Snapshot snapshot;
  std::vector<hr_record> records = before.records;
  records[0].cpu_usage_ns += 1'000'000'000;
  records[2].cpu_usage_ns -= 5;  // utime is not monotonic
  snapshot.at = before.at + std::chrono::seconds(2);
  snapshot.cgroups = records;
  const auto hog = before.pods[0], web = before.pods[1];
  const std::vector<PodReading> pods{{hog.pod, hog.cgroup, &records[0], {}, false},
                                     {web.pod, web.cgroup, &records[2], {}, false}};
  snapshot.pods = pods;
  fill(after, &before, snapshot, nullptr);
  publish(after);
  const Json summary = get();
  EXPECT_EQ(pod(summary, "hog")["cpu"]["usageNanoCores"], 500'000'000);
  EXPECT_EQ(pod(summary, "web")["cpu"]["usageNanoCores"], 0);
}

// memory.available counts them as not available; they are no working set.
TEST_F(SummaryTest, TheNodesWorkingSetHasNoHugePages) {
  setup_.views->node.publish([](NodeView& next, const NodeView* last) {
    next = *last;
    auto status = std::make_shared<NodeStatus>();
    status->capacity = {{"memory", *Quantity::parse("4Gi")},
                        {"hugepages-2Mi", *Quantity::parse("1Gi")},
                        {"hugepages-1Gi", *Quantity::parse("1Gi")}};
    next.status = std::move(status);
  });
  const Json memory = get()["node"]["memory"];
  EXPECT_EQ(memory["availableBytes"], 200 << 20);
  EXPECT_EQ(memory["workingSetBytes"], (std::int64_t{2} << 30) - (200 << 20));
}

TEST_F(SummaryTest, TheNodeHasItsSignals) {
  const Json node = get()["node"];
  EXPECT_EQ(node["nodeName"], "node-1");
  EXPECT_EQ(node["memory"]["availableBytes"], 200 << 20);
  EXPECT_EQ(node["memory"]["workingSetBytes"], (std::int64_t{4} << 30) - (200 << 20));
  EXPECT_EQ(node["memory"]["time"], "2026-01-01T00:00:10Z");
  EXPECT_EQ(node["fs"]["availableBytes"], 600);
  EXPECT_EQ(node["fs"]["capacityBytes"], 1000);
  EXPECT_EQ(node["fs"]["inodesFree"], 70);
  EXPECT_EQ(node["fs"]["inodesUsed"], 30);
  EXPECT_EQ(node["runtime"]["imageFs"]["availableBytes"], 5);
  EXPECT_EQ(node["rlimit"]["maxpid"], 32'768);
  EXPECT_EQ(node["rlimit"]["curproc"], 768);
}

TEST_F(SummaryTest, PageFaultsAreTheCgroups) {
  const hr_record record = full_record(3, 2);
  const Json memory = pod(get(), "hog")["memory"];
  EXPECT_EQ(memory["pageFaults"], record.pgfault);
  EXPECT_EQ(memory["majorPageFaults"], record.pgmajfault);
}

TEST_F(SummaryTest, TheNodesUsageIsItsAnonymousMemoryAndPageCache) {
  CgroupTable table = sample_cgroups();
  hr_record& root = *std::find_if(table.records.begin(), table.records.end(),
                                  [](const hr_record& each) { return each.parent_id == 0; });
  root.valid |= HR_MEMORY_STAT;
  root.anon = 100;
  root.file = 30;
  publish(table);
  EXPECT_EQ(get()["node"]["memory"]["usageBytes"], 130);
  root.file = HR_UNKNOWN;
  publish(table);
  EXPECT_FALSE(get()["node"]["memory"].contains("usageBytes"));
}

TEST_F(SummaryTest, SwapOfTheNodeIsThatOfTheSignal) {
  EXPECT_FALSE(get()["node"].contains("swap")) << "no swap, or unknown";
  setup_.views->node.publish([](NodeView& next, const NodeView* last) {
    next = *last;
    of(next.observations, Signal::kSwapAvailable) = Observation{300, 1000, next.at};
  });
  const Json swap = get()["node"]["swap"];
  EXPECT_EQ(swap["swapAvailableBytes"], 300);
  EXPECT_EQ(swap["swapUsageBytes"], 700);
}

TEST_F(SummaryTest, EphemeralStorageOfAPodIsWhatWasMeasured) {
  EXPECT_FALSE(pod(get(), "web").contains("ephemeral-storage")) << "not measured";
  CgroupTable table = sample_cgroups();
  for (PodRow& row : table.pods)
    if (row.pod->name == "hog")
      row.disk_parts = std::make_shared<const DiskUsage>(DiskUsage{
          .at = {},
          .containers = {{.name = "app", .rootfs = {}, .logs = {.used = Bytes{4096}, .inodes = 2}},
                         // A writable layer, known by its cgroup.
                         {.name = "app.service",
                          .rootfs = {.used = Bytes{100}, .inodes = 3},
                          .logs = {}}},
          .volumes = {{.name = "data", .usage = {.used = Bytes{7}, .inodes = 1}, .ranked = true},
                      {.name = "fast", .usage = {.used = Bytes{1000}, .inodes = {}}},
                      {.name = "unread", .usage = {}, .ranked = true}}});
  publish(table);
  const Json hog = pod(get(), "hog");
  const auto on_nodefs = [&](int used, int inodes) {
    return Json({{"time", hog["cpu"]["time"]},
                 {"availableBytes", 600},
                 {"capacityBytes", 1000},
                 {"inodesFree", 70},
                 {"inodes", 100},
                 {"usedBytes", used},
                 {"inodesUsed", inodes}});
  };
  EXPECT_EQ(hog["ephemeral-storage"], on_nodefs(4096 + 100 + 7, 6)) << "memory is no disk";
  const Json& app = hog["containers"][0];
  EXPECT_EQ(app["logs"], on_nodefs(4096, 2));
  EXPECT_EQ(app["rootfs"], on_nodefs(100, 3)) << "containerfs is unknown: it is on nodefs";
  ASSERT_EQ(hog["volume"].size(), 2U) << "what was not measured is left out";
  EXPECT_EQ(hog["volume"][0]["name"], "data");
  EXPECT_EQ(hog["volume"][0]["usedBytes"], 7);
  EXPECT_EQ(hog["volume"][0]["capacityBytes"], 1000);
  EXPECT_EQ(hog["volume"][1]["usedBytes"], 1000);
  EXPECT_FALSE(hog["volume"][1].contains("capacityBytes")) << "no disk";
}

TEST_F(SummaryTest, BytesOfTheNodesFilesystemInUseHaveThoseKeptForRoot) {
  EXPECT_FALSE(get()["node"]["fs"].contains("usedBytes"));
  const TempDir root;
  setup_.host = std::make_shared<const HostReaders>(
      HostReaders{.network = NetworkReader(root.path(), root.path()),
                  .processes = ProcessReader(root.path(), root.path()),
                  .filesystems = FilesystemSpaces({{Signal::kNodeFsAvailable, root.path()}})});
  struct statvfs space {};
  ASSERT_EQ(::statvfs(root.path().c_str(), &space), 0);
  const auto used = static_cast<double>((space.f_blocks - space.f_bfree) * space.f_frsize);
  EXPECT_NEAR(get()["node"]["fs"]["usedBytes"].get<double>(), used, 1e9);
}

TEST_F(SummaryTest, AveragesOfPressureAreReadFromTheCgroup) {
  const TempDir root;
  const std::string path = (root.path() / "kubepods.slice/kubepods-poduid_hog.slice").string();
  std::filesystem::create_directories(path);
  std::ofstream(path + "/memory.pressure") << "some avg10=1.50 avg60=0.25 avg300=0.00 total=7000\n"
                                              "full avg10=0.75 avg60=0.00 avg300=0.00 total=3000\n";
  EXPECT_FALSE(pod(get(), "hog")["memory"]["psi"]["some"].contains("avg10")) << "no root is set";
  setup_.cgroup_root = root.path().string();
  const Json hog = pod(get(), "hog");
  const Json some = hog["memory"]["psi"]["some"], full = hog["memory"]["psi"]["full"];
  EXPECT_EQ(some["avg10"], 1.5);
  EXPECT_EQ(some["avg60"], 0.25);
  EXPECT_EQ(some["avg300"], 0);
  EXPECT_EQ(full["avg10"], 0.75);
  EXPECT_FALSE(hog["cpu"]["psi"]["some"].contains("avg10")) << "that file does not exist";
  EXPECT_TRUE(hog["cpu"]["psi"]["some"].contains("total"));
}

TEST(PsiAverages, ALineThatIsNotWholeIsNotKnown) {
  const PsiKinds kinds = parse_psi_averages(
      "some avg10=1.00 avg60=2.00 total=7\nfull avg10=3.00 avg60=4.00 avg300=5.00 total=7");
  EXPECT_FALSE(kinds[HR_PSI_SOME]);
  ASSERT_TRUE(kinds[HR_PSI_FULL]);
  EXPECT_EQ(kinds[HR_PSI_FULL]->avg300, 5);
  EXPECT_FALSE(parse_psi_averages("")[HR_PSI_FULL]);
}

TEST_F(SummaryTest, SystemContainersAreTheOnesThatExist) {
  const Json node = get()["node"];
  ASSERT_EQ(node["systemContainers"].size(), 1u) << node.dump(1);
  EXPECT_EQ(node["systemContainers"][0]["name"], "pods");
  EXPECT_EQ(node["systemContainers"][0]["startTime"], "2026-01-01T00:00:02Z");
}

TEST_F(SummaryTest, OnlyCpuAndMemoryIsOnlyThat) {
  const Json summary = get(true);
  for (const char* field : {"fs", "runtime", "rlimit", "io", "swap"})
    EXPECT_FALSE(summary["node"].contains(field)) << field;
  const Json hog = pod(summary, "hog");
  EXPECT_TRUE(hog.contains("cpu") && hog.contains("memory"));
  for (const char* field : {"io", "swap", "process_stats"})
    EXPECT_FALSE(hog.contains(field) || hog["containers"][0].contains(field)) << field;
}

TEST_F(SummaryTest, BeforeTheFirstReadingItIsAnEmptyNode) {
  setup_.views = std::make_shared<PublishedViews>();
  const Json summary = get();
  EXPECT_EQ(summary["node"]["nodeName"], "node-1");
  EXPECT_TRUE(summary["pods"].empty());
}

TEST_F(SummaryTest, InvalidUtf8NamesAreReplaced) {
  CgroupTable table = sample_cgroups();
  auto strange = sample_pod("\xff\"\\\n", QosClass::kBurstable);
  table.pods[1].pod = strange;
  publish(table);
  EXPECT_EQ(get()["pods"].size(), 3u);
}

}  // namespace
}  // namespace headroom::report
