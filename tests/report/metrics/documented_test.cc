// SPDX-License-Identifier: Apache-2.0
// headroom-metrics(7) against what is served: every family is in it, and nothing else is. And
// docs/metrics.md, the table of all families, which is made of what is served.
#include "config/temp_dir.h"
#include "report/golden.h"
#include "report/http/server/http_server.h"
#include "report/metrics/admission_counts.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/kube_metrics.h"
#include "report/metrics/metrics.h"
#include "report/metrics/metrics_cpus.h"
#include "report/sample.h"
#include "report/view/cpus_view.h"

#include <algorithm>
#include <fstream>
#include <map>
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

// A metric family as a page of /metrics shows it.
struct ServedFamily {
  std::string type, help;
  Names labels;
};
using ServedFamilies = std::map<std::string, ServedFamily>;

// Of NAME{a="b",c="d"} VALUE: a and c. No value of the sample has a comma or a quote.
void add_labels(const std::string& sample, Names& labels) {
  const std::size_t open = sample.find('{'), close = sample.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return;
  std::istringstream pairs(sample.substr(open + 1, close - open - 1));
  for (std::string pair; std::getline(pairs, pair, ',');)
    if (const std::size_t equals = pair.find("=\""); equals != std::string::npos)
      labels.insert(pair.substr(0, equals));
}

void add_served(Router& router, const std::string& path, ServedFamilies& families) {
  const HttpResponse answer = router.answer({.path = path});
  std::string text, room(4096, '\0');
  while (const std::size_t size = answer.body->read(room))
    text.append(room, 0, size);
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (line.starts_with("# HELP ") && words >> word >> word >> name)
      std::getline(words >> std::ws, families[name].help);
    else if (line.starts_with("# TYPE ") && words >> word >> word >> name)
      words >> families[name].type;
    else
      add_labels(line, families[name].labels);
  }
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
  of(node.observations, Signal::kNodeFsAvailable) = Observation{300, 1000, node.at};
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

ServedFamilies all_families(bool old_names) {
  const auto views = std::make_shared<PublishedViews>();
  views->node.publish([](NodeView& next, const NodeView*) { next = full_node(); });
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) {
    next = sample_cgroups();
    for (hr_record& record : next.records)
      if (record.parent_id == 0) record = full_record(record.id, 0);
  });
  views->memory_forecasts.publish(
      [](PeakForecast::Records& next, const PeakForecast::Records*) { next = sample_forecasts(); });
  const TempDir proc;
  std::filesystem::create_directories(proc.path() / "self/net");
  proc.write("self/net/dev", "  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  proc.write("cgroup.procs", "");
  Router router({.views = views,
                 .old_names = old_names,
                 .now = [] { return sample_at(10'250); },
                 .host = std::make_shared<const HostReaders>(HostReaders{
                     .network = NetworkReader("", proc.path()),
                     .processes = ProcessReader(proc.path(), proc.path()),
                     .filesystems = FilesystemSpaces({{Signal::kNodeFsAvailable, proc.path()}})}),
                 .node_name = "node-1",
                 .extra_families =
                     [](Families& extra_families) {
                       add_reload_families(ReloadStatus(), extra_families);
                       add_cpu_families(full_cpus(), extra_families);
                       AdmissionCounts admissions;
                       admissions.count_rejection("OutOfcpu");
                       admissions.count_preemptions("cpu", 1);
                       admissions.append_to(extra_families);
                       add_kubernetes_families("tests/fixtures/kube/status.json", extra_families);
                     }},
                {.views = views});
  ServedFamilies families;
  for (const char* path : {"/metrics", "/metrics/resource"})
    add_served(router, path, families);
  return families;
}

Names all_served() {
  Names names;
  for (const auto& [name, family] : all_families(true))
    names.insert(name);
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

TEST(Documented, TheTableOfAllFamilies) {
  std::string table =
      "# Metrics\n\n"
      "All metrics of headroomd and headroom-kube, generated from the programs by their unit test "
      "`Documented.TheTableOfAllFamilies`.\n"
      "headroom-metrics(7) has the unit, the meaning of each label's values and the source of "
      "each. "
      "`container_*` and `machine_*` are in\n"
      "`/metrics/cadvisor`, and in `/metrics` with `compatibilityMetrics: true`; the families that "
      "`metrics.exclude` names are left out of `/metrics`.\n\n"
      "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const auto& [name, family] : all_families(false)) {
    std::string labels;
    for (const std::string& label : family.labels)
      if (label != "le") labels += (labels.empty() ? "" : ", ") + label;
    table += "| `" + name + "` | " + family.type + " | " + labels + " | " + family.help + " |\n";
  }
  expect_golden("../../docs/metrics.md", table);
}

// The pages above show what the sample has; the tables say what there is.
TEST(Documented, EveryRowOfTheTablesIsInTheManPage) {
  const Names pages = documented();
  for (const CgroupFamily& family : cgroup_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
  for (const PodFamily& family : pod_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
  for (const HostFamily& family : host_families())
    EXPECT_TRUE(pages.contains(std::string(family.name))) << family.name;
}

}  // namespace
}  // namespace headroom::report
