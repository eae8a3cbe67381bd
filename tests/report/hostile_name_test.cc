// SPDX-License-Identifier: Apache-2.0
// One hostile name, as a pod, a cgroup, a process and a container may have it, in everything that
// headroom prints: terminal, JSON, metrics, page and log.
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "config/temp_dir.h"
#include "ctl/common/commands.h"
#include "ctl/common/status_document.h"
#include "manifest/manifest_reader.h"
#include "observe/pod/oci_bundle.h"
#include "observe/pod/pod_registry.h"
#include "report/eviction/audit_line.h"
#include "report/kernel_oom.h"
#include "report/metrics/metrics.h"
#include "report/page/page_router.h"
#include "report/sample.h"
#include "report/status/status_json.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::ordered_json;

// Invalid UTF-8, a field separator of the journal, a line break, an escape sequence, quotes,
// markup, a mark that reverses the line; 253 characters.
std::string hostile() {
  std::string name =
      "\xff\xc3\x1eHEADROOM_POD=forged\n\x1b[31m\"'\\<script>alert(1)</script>&{}\xe2\x80\xae";
  name.resize(253, 'x');
  return name;
}

// One line of valid UTF-8 that does not control what shows it.
void expect_clean(const std::string& text, const char* what) {
  std::string lines = text;
  std::erase(lines, '\n');
  EXPECT_EQ(printable(lines), lines) << what;
}

std::string text_of(ResponseBody& body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

// The same name in a manifest, whose format has no bytes that are not text.
std::string manifest() {
  std::string name = "\\x1eHEADROOM_POD=forged\\n\\e[31m\\\"'<script>alert(1)</script>&\\u202e";
  name.resize(253, 'x');
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: \"" + name + "\", namespace: \"" + name +
         "\"}\nspec: {containers: [{name: \"" + name + "\"}]}\n";
}

struct HostileName : ::testing::Test {
  HostileName() {
    pod = std::make_shared<Pod>(read_pod());
    records = {full_record(3, 2), full_record(4, 3)};
    names.paths = {{2, "/kubepods.slice"},
                   {3, "/kubepods.slice/pod" + hostile()},
                   {4, "/kubepods.slice/pod" + hostile() + "/" + hostile()}};
    readings = {{pod, CgroupId{3}, &records[0], Bytes{0}, false}};
    Snapshot snapshot;
    snapshot.at = sample_at(9'500);
    snapshot.cgroups = records;
    snapshot.pods = readings;
    views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
    views->cgroups.publish([&](CgroupTable& next, const CgroupTable* previous) {
      fill(next, previous, snapshot, &names);
    });
    status = status_text(*views, nullptr, {});
  }

  static Pod read_pod() {
    auto manifests = observe::parse_manifests(manifest(), "pod.yaml");
    EXPECT_EQ(manifests.pods.size(), 1u);
    return manifests.pods.empty() ? Pod() : manifests.pods.front();
  }
  SampleNames names;
  std::shared_ptr<const Pod> pod;
  std::vector<hr_record> records;
  std::vector<PodReading> readings;
  std::shared_ptr<PublishedViews> views = std::make_shared<PublishedViews>();
  std::string status;
};

TEST_F(HostileName, OfAPodIsCleanWhereItIsRead) {
  for (const std::string& text : {pod->name, pod->pod_namespace, pod->containers.front().name})
    EXPECT_EQ(printable(text), text);
}

TEST_F(HostileName, OfACgroupIsNoPods) {
  std::string name = hostile();
  std::erase(name, '/');
  observe::PodRegistry registry{observe::PodCgroupParser("kubepods")};
  EXPECT_FALSE(registry.add_cgroup(CgroupId{4}, "/kubepods/besteffort/pod" + name));
}

TEST_F(HostileName, OfAContainerIsCleanWhereItIsRead) {
  const TempDir root;
  const std::string id(64, 'a');
  const auto bundle = root.path() / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / id;
  std::filesystem::create_directories(bundle);
  std::ofstream(bundle / "config.json")
      << R"({"annotations": {"io.kubernetes.cri.sandbox-name": "a\u001eb\u202ec\n"}})";
  EXPECT_EQ(observe::find_container(id, root.path())->pod, "a?b???c?");
}

TEST_F(HostileName, InTheStatusAndOnThePage) {
  EXPECT_NO_THROW(static_cast<void>(Json::parse(status)));
  expect_clean(status, "status");
  PageRouter router{views, nullptr};
  const auto argument = [](const char*) { return std::string_view(); };
  auto answer = router.answer({.path = "/api/status", .argument = argument});
  ASSERT_TRUE(answer);
  const std::string text = text_of(*answer->body);
  expect_clean(text, "page");
  EXPECT_EQ(Json::parse(text)["pods"].size(), 1u);
}

TEST_F(HostileName, OnATerminal) {
  const auto parsed = ctl::parse_status(status);
  ASSERT_TRUE(parsed) << parsed.error().what;
  expect_clean(ctl::render_pods(*parsed, ctl::PodOrder::kName, {}), "terminal");
}

TEST_F(HostileName, InMetrics) {
  const Metrics metrics({.views = views,
                         .now = [] { return sample_at(10'250); },
                         .wall_time = [](Instant at) { return WallTime(at.time_since_epoch()); }});
  const std::string text = text_of(*metrics.all(Format::kText));
  expect_clean(text, "metrics");
  std::istringstream lines(text);
  int named = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("<script>") == std::string::npos) continue;
    ++named;
    EXPECT_FALSE(line.starts_with("HEADROOM_POD")) << line;
    EXPECT_TRUE(line.find("} ") != std::string::npos) << line;
  }
  EXPECT_GT(named, 0);
}

TEST_F(HostileName, InTheAuditLog) {
  Eviction eviction = sample_eviction();
  eviction.decision.pod = pod;
  eviction.path = std::string(names.path_of(CgroupId{4}));
  eviction.decision.part = {.unit = EvictionUnit::kProcess, .process = {.pid = 7, .started = 1}};
  hostile().copy(eviction.decision.part.comm.data(), eviction.decision.part.comm.size() - 1);
  const std::string line = audit_line(eviction, WallTime(), nullptr);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_NO_THROW(static_cast<void>(Json::parse(line)));
}

TEST_F(HostileName, InTheJournal) {
  const KernelOomKill kill{.cgroup = CgroupId{4},
                           .path = hostile(),
                           .pod = pod,
                           .pid = 7,
                           .comm = hostile(),
                           .limit_of = {},
                           .limit_path = {}};
  const std::string payload = log::encode(kernel_oom_line(kill), {{"HEADROOM_COMM", kill.comm}});
  EXPECT_EQ(std::ranges::count(payload, '\x1e'), 1) << "the separator of the one field";
  std::string visible = payload;
  std::erase(visible, '\x1e');
  EXPECT_EQ(printable(visible), visible);
}

}  // namespace
}  // namespace headroom::report
