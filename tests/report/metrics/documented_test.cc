// SPDX-License-Identifier: Apache-2.0
// headroom-metrics(7) against what is served: every family is in it, and nothing else is.
#include "config/temp_dir.h"
#include "report/http/server/http_server.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/kube_metrics.h"
#include "report/metrics/metrics.h"
#include "report/metrics/metrics_cpus.h"
#include "report/sample.h"
#include "report/view/cpus_view.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

using Names = std::set<std::string>;

// ".TP\n.B NAME\n" begins an entry.
Names documented() {
  std::ifstream page("docs/headroom-metrics.7");  // tests run in the root of the repository
  EXPECT_TRUE(page);
  Names names;
  std::string before;
  for (std::string line; std::getline(page, line); before = line)
    if (before == ".TP" && line.starts_with(".B ")) names.insert(line.substr(3));
  return names;
}

Names served(Router& router, const std::string& path) {
  const HttpResponse answer = router.answer({.path = path});
  std::string text, room(4096, '\0');
  while (const std::size_t size = answer.body->read(room))
    text.append(room, 0, size);
  Names names;
  std::istringstream lines(text);
  for (std::string word, line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> word && word == "#" && words >> word && word == "TYPE" && words >> word)
      names.insert(word);
  }
  return names;
}

// A node of which everything is known.
NodeView full_node() {
  NodeView node = sample_node();
  node.thresholds[2].available = 1;
  for (const Signal signal :
       {Signal::kNodeFsInodesFree, Signal::kPidAvailable, Signal::kMemoryPressure}) {
    node.observations[static_cast<std::size_t>(signal)] = {.available = 1, .capacity = 2};
    ThresholdView threshold = node.thresholds[0];
    threshold.signal = signal;
    threshold.limit = 1;
    node.thresholds.push_back(threshold);
  }
  node.waits.throttles.emplace();
  node.swap_room.emplace();
  node.unaccounted_memory.emplace();
  of(node.observations, Signal::kSwapAvailable) = Observation{300, 1000, node.at};
  node.status = sample_status();
  node.slices = sample_slices();
  return node;
}

CpusView full_cpus() {
  CpusView view;
  view.places.push_back({});
  view.pool.emplace();
  view.containers.push_back(
      {.pod_namespace = "default", .pod = "web", .uid = "u", .container = "c"});
  view.memory.emplace();
  view.memory->nodes[0].tables["memory"] = {};
  return view;
}

Names all_served() {
  const auto views = std::make_shared<PublishedViews>();
  views->node.publish([](NodeView& next, const NodeView*) { next = full_node(); });
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) {
    next = sample_cgroups();
    for (hr_record& record : next.records)
      if (record.parent_id == 0) record = full_record(record.id, 0);
  });
  const TempDir proc;
  std::filesystem::create_directories(proc.path() / "self/net");
  proc.write("self/net/dev", "  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  Router router({.views = views,
                 .now = [] { return sample_at(10'250); },
                 .network = std::make_shared<const NetworkReader>("", proc.path()),
                 .node_name = "node-1",
                 .extra_families =
                     [](Families& extra_families) {
                       add_reload_families(ReloadStatus(), extra_families);
                       add_cpu_families(full_cpus(), extra_families);
                       add_kubernetes_families("tests/fixtures/kube/status.json", extra_families);
                     }},
                {.views = views});
  Names names;
  for (const char* path : {"/metrics", "/metrics/resource"})
    names.merge(served(router, path));
  // The daemon's BPF programs tell these; no test can make the kernel count.
  names.insert({"headroom_bpf_run_seconds_total", "headroom_bpf_runs_total"});
  return names;
}

std::string difference(const Names& from, const Names& less) {
  std::string result;
  for (const std::string& name : from)
    if (!less.contains(name)) result += "\n  " + name;
  return result;
}

TEST(Documented, EveryFamilyIsInTheManPage) {
  EXPECT_EQ(difference(all_served(), documented()), "") << "add them to docs/headroom-metrics.7";
}

TEST(Documented, TheManPageHasNothingElse) {
  EXPECT_EQ(difference(documented(), all_served()), "")
      << "not served, or not by the sample in tests/report/sample.cc";
}

// The pages above show what the sample has; the tables say what there is.
TEST(Documented, EveryRowOfTheTablesIsInTheManPage) {
  const Names pages = documented();
  for (const CgroupFamily& family : cgroup_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
  for (const PodFamily& family : pod_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
  for (const NetworkFamily& family : network_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
}

}  // namespace
}  // namespace headroom::report
