// SPDX-License-Identifier: Apache-2.0
// headroomctl run, list: what a manifest runs, the units that makes, and how they are listed.
#include "config/temp_dir.h"
#include "ctl/common/commands.h"
#include "ctl/run/container_program.h"
#include "ctl/run/pod_units.h"
#include "ctl/run/preempt_pods.h"
#include "ctl/run/start_pod.h"
#include "manifest/manifest_reader.h"
#include "report/sample.h"
#include "report/status/status_json.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Lines = std::vector<std::string>;
using Role = Program::Role;
using nlohmann::json;

constexpr const char* kPod = R"(apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, uid: 0b1e5a4e-1111-4222-8333-444455556666}
spec:
  terminationGracePeriodSeconds: 7
  initContainers:
  - {name: fetch, command: [/bin/fetch]}
  - {name: log, command: [/bin/log], restartPolicy: Always}
  containers:
  - name: main
    command: [/bin/web, --port]
    args: ["80"]
    workingDir: /srv
    env: [{name: A, value: "x y"}, {name: B}]
  - {name: side, command: [/bin/side]}
)";

TEST(Programs, AreTheContainersCommands) {
  const auto programs = programs_of(kPod, "f");
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 4u);
  EXPECT_EQ((*programs)[0].role, Role::kInit);
  EXPECT_EQ((*programs)[1].role, Role::kSidecar);
  const Program& main = (*programs)[2];
  EXPECT_EQ(main.command, (Lines{"/bin/web", "--port", "80"}));
  EXPECT_EQ(main.directory, "/srv");
  EXPECT_EQ(main.environment.at(0), (std::pair<std::string, std::string>{"A", "x y"}));
  EXPECT_EQ(main.environment.at(1).second, "");
}

TEST(Programs, ReportAllErrors) {
  const auto programs = programs_of(R"(kind: Pod
spec:
  containers:
  - {name: a, image: nginx}
  - {name: b, command: [x], workingDir: here, env: [{name: N, valueFrom: {x: y}}, {value: v}]}
)",
                                    "f");
  ASSERT_FALSE(programs);
  Lines lines;
  for (const config::Diagnostic& diagnostic : programs.error())
    lines.push_back(to_string(diagnostic));
  EXPECT_EQ(lines,
            (Lines{"f:4: spec.containers[0].command: expected the program to run: images are "
                   "not supported here",
                   "f:5: spec.containers[1].env[0].valueFrom: not supported here; expected value",
                   "f:5: spec.containers[1].env[1].name: expected the name of a variable",
                   "f:5: spec.containers[1].workingDir: expected an absolute path, found "
                   "\"here\""}));
  EXPECT_FALSE(programs_of("kind: List\nitems: []\n", "f"));
}

struct Unit {
  Pod pod;
  PodUnits pod_units;
  std::vector<Program> programs;

  explicit Unit(const std::string& manifest)
      : pod(observe::parse_manifests(manifest, "f").pods.at(0)),
        pod_units(*make_pod_units(
            pod, {}, {.capacity = 1_GiB, .swap = {}, .allocatable = 1_GiB, .huge_page_sizes = {}})),
        programs(*programs_of(manifest, "f")) {}
  Lines arguments(std::size_t index, Streams streams) const {
    return systemd_run_command({pod, pod_units, pod_units.containers[index], programs[index]},
                               programs, streams);
  }
};

bool holds(const Lines& arguments, const std::string& word) {
  return std::ranges::find(arguments, word) != arguments.end();
}
std::string exec_stop_post(const Lines& arguments) {
  std::string all;
  for (const std::string& word : arguments)
    if (word.starts_with("--property=ExecStopPost=")) all += word.substr(24) + "\n";
  return all;
}

TEST(SystemdRunCommand, OfASingleContainerCleansUpItself) {
  const Unit unit(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": "u"},
    "spec": {"containers": [{"name": "main", "command": ["/bin/x", "-y"]}]}})");
  const Lines arguments = unit.arguments(0, Streams::kPipes);
  EXPECT_TRUE(holds(arguments, "--unit=headroom-run-default.web.service"));
  EXPECT_TRUE(holds(arguments, "--slice=kubepods-besteffort-podu.slice"));
  EXPECT_TRUE(holds(arguments, "--property=TimeoutStopSec=30"));
  EXPECT_TRUE(holds(arguments, "--property=KillMode=mixed"));
  EXPECT_TRUE(holds(arguments, "--property=OOMScoreAdjust=1000"));
  EXPECT_TRUE(holds(arguments, "--property=CPUWeight=1"));
  EXPECT_TRUE(holds(arguments, "--property=OOMPolicy=kill"));
  EXPECT_EQ(exec_stop_post(arguments),
            "-/bin/rm -f \"/run/headroom/manifests/default.web.yaml\"\n"
            "-/bin/systemctl --no-block stop kubepods-besteffort-podu.slice\n");
  EXPECT_EQ(Lines(arguments.end() - 5, arguments.end()),
            (Lines{"--wait", "--pipe", "--", "/bin/x", "-y"}));
  EXPECT_FALSE(holds(unit.arguments(0, Streams::kNone), "--wait"));
  EXPECT_TRUE(holds(unit.arguments(0, Streams::kTerminal), "--pty"));
}

TEST(SystemdRunCommand, OfSeveralContainersTheLastCleansUp) {
  const Unit unit(kPod);
  const Lines main = unit.arguments(2, Streams::kNone);
  EXPECT_TRUE(holds(main, "--unit=headroom-run-shop.web.main.service"));
  EXPECT_TRUE(holds(main, "--property=TimeoutStopSec=7"));
  EXPECT_TRUE(holds(main, "--setenv=A=x y"));
  EXPECT_TRUE(holds(main, "--working-directory=/srv"));
  EXPECT_EQ(exec_stop_post(main),
            "-/bin/sh -c 'if [ -e \"$$0\" ]; then flock \"$$0\" true; fi; systemctl --quiet "
            "is-active headroom-run-shop.web.main.service headroom-run-shop.web.side.service || { "
            "rm -f \"$$0\"; systemctl --no-block stop " +
                unit.pod_units.slice + "; }' \"/run/headroom/manifests/shop.web.yaml\"\n");
  EXPECT_NE(exec_stop_post(unit.arguments(0, Streams::kPipes)).find("flock --nonblock"),
            std::string::npos)
      << "it is waited for by who holds the lock";
  const Lines sidecar = unit.arguments(1, Streams::kNone);
  EXPECT_EQ(exec_stop_post(sidecar), "") << "it goes with the slice";
  EXPECT_TRUE(holds(sidecar, "--property=Restart=always"));
}

TEST(RunNames, AreReadBackFromTheirUnits) {
  for (const RunName& name : {RunName{"default", "web", ""}, RunName{"a-b", "c-d", "e-f"}})
    EXPECT_EQ(run_name(unit_name(name)), name);
  EXPECT_FALSE(run_name("headroomd.service"));
  EXPECT_FALSE(run_name("headroom-run-x.service"));
}

TEST(Runs, AreListedWithTheirPods) {
  const observe::PodCgroupParser layout("kubepods.slice");
  const std::string slice =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice";
  const std::vector<observe::UnitState> units{
      {.unit = "headroom-run-default.web.service",
       .active = "active",
       .sub = "running",
       .cgroup = slice + "/headroom-run-default.web.service",
       .main_pid = 42,
       .since_realtime = 1'000'000'000'000'000},
      {.unit = "headroom-run-shop.db.main.service", .active = "failed", .sub = "failed"}};
  EXPECT_EQ(render_runs(units, layout, 1'000'000'090, {}),
            "NAMESPACE  NAME  CONTAINER  QOS        STATE             FOR  PID\n"
            "default    web   -          Burstable  active/running  1m30s   42\n"
            "shop       db    main       -          failed/failed       -    -\n");
  const json document = json::parse(runs_json(units, layout));
  EXPECT_EQ(document["runs"][0]["uid"], "u");
  EXPECT_EQ(document["runs"][0]["since"], "2001-09-09T01:46:40Z");
  EXPECT_EQ(document["runs"][1]["container"], "main");
  EXPECT_TRUE(document["runs"][1]["pid"].is_null());
  EXPECT_NE(render_runs({}, layout, 0, {}), "");
}

// Otherwise the next admission would not count the pod that was just started.
TEST(Run, TheNextAdmissionWaitsUntilThePodIsListed) {
  using namespace std::chrono_literals;
  const std::string with_pod =
      test::status_json(test::sample_node(), test::sample_cgroups(), nullptr).dump();
  int fetched = 0;
  const auto fetch = [&]() -> Result<std::string> {
    ++fetched;
    if (fetched == 1) return failure("no bus");
    return fetched == 2 ? std::string("{}") : with_pod;
  };
  Pod pod;
  pod.name = "hog";
  pod.uid = "uid-hog";
  EXPECT_TRUE(wait_until_listed(pod, fetch, 10s));
  EXPECT_EQ(fetched, 3);
  pod.name = "poduid-hog";  // by its cgroup alone: its requests are not known yet
  EXPECT_FALSE(wait_until_listed(pod, fetch, 60ms));
}

TEST(LockAdmission, LetsOneRunAtATimeAsk) {
  test::TempDir dir;
  const auto file = dir.path() / "run.lock";
  auto first = lock_admission(file);
  ASSERT_TRUE(first) << first.error().what;
  const Fd second(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::flock(second.get(), LOCK_EX | LOCK_NB), -1);
  first->reset();
  EXPECT_EQ(::flock(second.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(lock_admission(dir.path() / "absent/run.lock"));
}

TEST(AdmissionResultTest, HasThePreemptedPodsAndAllocatableMemory) {
  json pod{{"namespace", "kube-system"},
           {"name", "dns"},
           {"admitted", true},
           {"refusals", json::array()},
           {"resolved_by_preemption", json::array()},
           {"preemption_victims", json::array()},
           {"untolerated_preferred_taints", json::array()}};
  pod["preemption_victims"] = {{{"namespace", "default"},
                                {"name", "web"},
                                {"uid", "u"},
                                {"qos", "Burstable"},
                                {"priority", 7}}};
  const json answer{
      {"node", "n"}, {"allocatable", {{"memory", "900Mi"}}}, {"pods", json::array({pod})}};
  const auto admission = read_admission(answer.dump());
  ASSERT_TRUE(admission);
  EXPECT_TRUE(admission->admitted);
  EXPECT_EQ(admission->allocatable_memory, 900_MiB);
  ASSERT_EQ(admission->preempted.size(), 1u);
  EXPECT_EQ(admission->preempted[0].uid, "u");
  EXPECT_EQ(admission->preempted[0].qos, QosClass::kBurstable);
  EXPECT_FALSE(read_admission("{}"));
}

}  // namespace
}  // namespace headroom::ctl
