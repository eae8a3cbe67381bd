// SPDX-License-Identifier: Apache-2.0
// headroom.metrics: the cgroups that have series in /metrics, and the families that are left out.
#include "report/golden.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/metrics.h"
#include "report/metrics/metrics_cpus.h"
#include "report/sample.h"

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

// A pod with a container, its pause container and a cgroup that the container made; a service.
CgroupTable node() {
  test::SampleNames names;
  const std::string pods = "/kubepods.slice", burstable = pods + "/kubepods-burstable.slice",
                    pod = burstable + "/kubepods-burstable-podu.slice";
  names.paths = {{1, "/"},
                 {2, pods},
                 {3, burstable},
                 {4, pod},
                 {5, pod + "/web.scope"},
                 {6, pod + "/web.scope/inner"},
                 {7, pod + "/pause"},
                 {8, "/system.slice"},
                 {9, "/system.slice/cron.service"},
                 {10, pod + "/cri-containerd-" + std::string(64, 'a') + ".scope"},
                 {11, pod + "/log.service"}};
  const std::vector<hr_record> records{
      test::full_record(1, 0),  test::full_record(2, 1), test::full_record(3, 2),
      test::full_record(4, 3),  test::full_record(5, 4), test::full_record(6, 5),
      test::full_record(7, 4),  test::full_record(8, 1), test::full_record(9, 8),
      test::full_record(10, 4), test::full_record(11, 4)};
  auto described = test::sample_pod("web", QosClass::kBurstable);
  described->containers.emplace_back().name = "web";
  const std::vector<PodReading> readings{{described, CgroupId{4}, &records[3], {}, false}};
  Snapshot snapshot;
  snapshot.cgroups = records;
  snapshot.pods = readings;
  const std::vector<std::uint64_t> waiting{5};
  std::vector<hr_stalls> stalls(1);
  stalls[0].causes[HR_STALL_LIMIT] = test::sample_waits(2'500'000'000, 90, 10);
  snapshot.waits.stalls = ByCgroup<hr_stalls>{waiting, stalls};
  const std::vector<hr_throttles> throttles{
      {.waits = test::sample_waits(720'000'000, 0, 8), .any_ns = 720'000'000, .any_since = 0}};
  snapshot.waits.throttles = ByCgroup<hr_throttles>{waiting, throttles};
  CgroupTable table;
  fill(table, nullptr, snapshot, &names);
  return table;
}

std::string scrape(CgroupScope scope, std::vector<std::string> exclude = {},
                   bool cadvisor_families = true, Families own = {}) {
  Published<CgroupTable> published;
  published.publish([](CgroupTable& next, const CgroupTable*) { next = node(); });
  ScrapeSetup setup;
  setup.cgroups = published.latest();
  setup.scope = scope;
  setup.exclude = std::move(exclude);
  setup.cadvisor_families = cadvisor_families;
  setup.own_families = std::move(own);
  ScrapeBody body(std::move(setup));
  std::array<char, 4096> room;
  std::string text;
  while (const std::size_t size = body.read(room))
    text.append(room.data(), size);
  return text;
}

// The last elements of the paths with a series of the family.
std::set<std::string> cgroups_of(const std::string& text, const std::string& family) {
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(family + "{")) {
      const std::size_t id = line.find("id=\"") + 4;
      const std::string path = line.substr(id, line.find('"', id) - id);
      found.insert(path == "/" ? path : path.substr(path.rfind('/') + 1));
    }
  return found;
}

TEST(MetricScope, EachScopeHasTheNodesOwnCgroups) {
  using Names = std::set<std::string>;
  const Names own{"/", "kubepods.slice", "kubepods-burstable.slice", "system.slice"};
  const auto of = [](CgroupScope scope) {
    return cgroups_of(scrape(scope), "container_memory_working_set_bytes");
  };
  Names pods = own;
  pods.insert("kubepods-burstable-podu.slice");
  EXPECT_EQ(of(CgroupScope::kPods), pods);
  Names containers = pods;
  containers.insert("web.scope");
  // The runtime does not say what it is: it may be one of the pod's containers.
  containers.insert("cri-containerd-" + std::string(64, 'a') + ".scope");
  containers.insert("log.service");  // without a runtime a container is a service
  EXPECT_EQ(of(CgroupScope::kContainers), containers);
  Names all = containers;
  all.insert({"inner", "pause", "cron.service"});
  EXPECT_EQ(of(CgroupScope::kAll), all);
}

// What is in no other fixture: CPUs on two NUMA nodes, and slices.
Families cpus_and_slices() {
  CpusView view;
  for (Cpu cpu = 0; cpu < 4; ++cpu)
    view.places.push_back({.cpu = cpu, .core = cpu, .socket = cpu / 2, .numa = cpu / 2});
  view.containers.push_back(
      {.pod_namespace = "default", .pod = "web", .uid = "u", .container = "web"});
  view.containers.front().cpus = *CpuSet::parse("1-2");
  view.pool = SharedPool{{1900}, {2500}};
  Families families;
  add_cpu_families(view, families);
  add_slice_families(*test::sample_slices(), families);
  return families;
}

// The families of pods and of the node's own cgroups do not depend on container_*, which a kubelet
// may have instead: the dashboards are evaluated over this page (tests/prometheus/suite.py).
TEST(MetricScope, APageBesideAKubeletReadsAsTheGoldenText) {
  const std::string text = scrape(CgroupScope::kContainers, {}, false, cpus_and_slices());
  EXPECT_EQ(("\n" + text).find("\ncontainer_"), std::string::npos) << text;
  EXPECT_EQ(
      cgroups_of(text, "headroom_node_cgroup_tasks"),
      (std::set<std::string>{"/", "kubepods.slice", "kubepods-burstable.slice", "system.slice"}));
  test::expect_golden("metrics/beside-a-kubelet.prom", text);
}

TEST(MetricScope, ExcludedFamiliesAreLeftOut) {
  const std::string text =
      scrape(CgroupScope::kAll, {"container_memory_*", "headroom_pod_info", "container_thread?"});
  EXPECT_EQ(text.find("container_memory_"), std::string::npos);
  EXPECT_EQ(text.find("headroom_pod_info"), std::string::npos);
  EXPECT_EQ(text.find("container_threads{"), std::string::npos);
  EXPECT_NE(text.find("container_threads_max{"), std::string::npos);
  EXPECT_NE(text.find("headroom_pod_priority{"), std::string::npos);
  EXPECT_TRUE(matches_any("a", {"b", "a"}));
  EXPECT_FALSE(matches_any("ab", {"a", ""}));
}

}  // namespace
}  // namespace headroom::report
