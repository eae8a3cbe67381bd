// SPDX-License-Identifier: Apache-2.0
// Drop-ins: what comes of a file and those beside it, and where each value is said to come from.
#include "config/files.h"
#include "config/load/effective_settings.h"
#include "config/thresholds_as_text.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace test;

class DropIns : public testing::Test {
 protected:
  DropIns() { std::filesystem::create_directory(dir_.path() / "f.d"); }
  void main(const std::string& text) { dir_.write("f", kHead + text); }
  void drop_in(const std::string& name, const std::string& text) {
    dir_.write("f.d/" + name, text);
  }

  LoadResult read() {
    CommandLine line = line_;
    line.config = {dir_.path() / "f"};
    return config::read(line);
  }
  // Each "file:line: what", the directory left out.
  std::vector<std::string> diagnostics() {
    std::vector<std::string> all;
    for (const Diagnostic& each : read().diagnostics)
      all.push_back(to_string(each).substr(dir_.path().native().size() + 1));
    return all;
  }
  // "value origin" of a setting.
  std::string setting(const std::string& path, const std::string& entry = "") {
    for (const ConfigSetting& each : read().config.settings)
      if (each.path == path && each.entry == entry) {
        const std::size_t slash = each.origin.rfind('/');
        return each.value + " " +
               (slash == std::string::npos ? each.origin : each.origin.substr(slash + 1));
      }
    return "";
  }

  TempDir dir_;
  CommandLine line_;
};

TEST_F(DropIns, TheLastByNameOverridesAndMapsAreMerged) {
  main(
      "evictionHard: {memory.available: 1Gi, nodefs.available: 5%}\nheadroom: {checkFloor: 3ms}\n");
  drop_in("20.yaml", "evictionHard:\n  memory.available: 3Gi\nheadroom:\n  mode: enforce\n");
  drop_in("10.conf", "{\"evictionHard\": {\"memory.available\": \"2Gi\"}, \"maxPods\": 7}");
  const LoadResult loaded = read();
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
  EXPECT_EQ(loaded.config.policy.mode, Mode::kEnforce);
  EXPECT_EQ(loaded.config.max_pods, 7);
  EXPECT_EQ(loaded.config.policy.check_floor, std::chrono::milliseconds(3));
  EXPECT_EQ(setting("evictionHard", "memory.available"), "\"3Gi\" 20.yaml:2");
  EXPECT_EQ(setting("evictionHard", "nodefs.available"), "\"5%\" f:3");
  EXPECT_EQ(setting("maxPods"), "7 10.conf:1");
  EXPECT_EQ(setting("headroom.mode"), "\"enforce\" 20.yaml:4");
  EXPECT_EQ(setting("headroom.sweepPeriod"), "\"1s\" default");
}

TEST_F(DropIns, ListsAreReplacedAndNullRemovesAKey) {
  main("enforceNodeAllocatable: [pods]\nheadroom: {logLevel: debug, nodeLabels: {a: b}}\n");
  drop_in("1.yaml",
          "enforceNodeAllocatable: [none]\nheadroom: {logLevel: null, nodeLabels: {c: d}}");
  const LoadResult loaded = read();
  EXPECT_EQ(loaded.config.log_level, "info");
  EXPECT_EQ(loaded.config.node_labels, (Labels{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(setting("enforceNodeAllocatable"), "[\"none\"] 1.yaml:1");
  EXPECT_EQ(setting("headroom.logLevel"), "\"info\" default");
}

TEST_F(DropIns, AllErrorsHaveFileAndLine) {
  main("maxPods: x\nmaxPodz: 1\n");
  drop_in("1.yaml", "headroom:\n  mode: x\n  mode: y\n");
  drop_in("2.yaml", "headrom: b\n---\nc: d\n");
  drop_in("3.yaml", "kind: Pod\n\nmaxPods: [\n");
  drop_in("4.yaml", "[]\n");
  EXPECT_EQ(
      diagnostics(),
      (std::vector<std::string>{
          "f:3: maxPods: expected a whole number from 0 to 2147483647, found the string \"x\"",
          "f:4: unknown key maxPodz, did you mean maxPods?",
          "f.d/1.yaml:2: headroom.mode: expected observe or enforce, found \"x\"",
          "f.d/1.yaml:3: duplicate key mode: it is already on line 2",
          "f.d/2.yaml:1: unknown key headrom, did you mean headroom?",
          "f.d/2.yaml:3: expected one document, found another",
          "f.d/3.yaml:4: not YAML: end of sequence flow not found",
          "f.d/4.yaml:1: expected a KubeletConfiguration, found a list"}));
}

TEST_F(DropIns, ASoftThresholdMayHaveItsGraceFromAnotherFile) {
  main("evictionSoft: {memory.available: 1Gi}\n");
  EXPECT_EQ(diagnostics().size(), 1u);
  drop_in("grace.yaml", "evictionSoftGracePeriod: {memory.available: 30s}");
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
}

TEST_F(DropIns, OtherFilesAreIgnored) {
  main("");
  drop_in("1.yaml~", "nonsense");
  drop_in("README", "nonsense");
  drop_in(".hidden.yaml", "nonsense");
  std::filesystem::create_directory(dir_.path() / "f.d/dir.yaml");
  drop_in("comment.yaml", "# nothing yet\n");
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
}

// As the kubelet's --config-dir: each directory's entries by name, hidden or not, links to
// directories left alone. Of our own suffixes hidden files are ignored, as before.
TEST_F(DropIns, SubdirectoriesAreWalkedAtTheirPlaceByName) {
  main("maxPods: 1\n");
  const auto directory = [&](const char* name) {
    std::filesystem::create_directory(dir_.path() / "f.d" / name);
  };
  directory("20-site.d");
  directory("20-site.d/deep");
  directory(".hidden");
  drop_in(".hidden/1.conf", "maxPods: 2\npodsPerCore: 2\n");
  drop_in(".hidden/1.yaml", "evictionMaxPodGracePeriod: 2\n");
  drop_in("10.conf", "maxPods: 10\npodPidsLimit: 10\n");
  drop_in("20-site.d/deep/5.conf", "maxPods: 25\n");
  drop_in("20-site.d/a.conf", "maxPods: 20\npodPidsLimit: 20\n");
  drop_in("3.conf", "podPidsLimit: 30\n");
  std::filesystem::create_directory_symlink(dir_.path() / "f.d", dir_.path() / "f.d/30-link");
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
  EXPECT_EQ(setting("maxPods"), "25 5.conf:1");
  EXPECT_EQ(setting("podPidsLimit"), "30 3.conf:1");
  EXPECT_EQ(setting("podsPerCore"), "2 1.conf:2");
  EXPECT_EQ(setting("evictionMaxPodGracePeriod"), "0 default");
}

TEST_F(DropIns, AFlagOverridesAllFiles) {
  main("evictionHard: {memory.available: 1Gi}\n");
  drop_in("1.yaml", "headroom: {mode: enforce}");
  line_.mode = {"observe"};
  line_.eviction_hard = {"nodefs.available<3%"};
  EXPECT_EQ(setting("headroom.mode"), "\"observe\" --mode");
  EXPECT_EQ(setting("evictionHard", "nodefs.available"), "\"3%\" --eviction-hard");
  EXPECT_EQ(setting("evictionHard", "memory.available"), "");
}

TEST_F(DropIns, ReservationFlagsAreShownAsTheOrigin) {
  main("kubeReserved: {cpu: 1, memory: 1Gi}\ncgroupRoot: /a\ncgroupsPerQOS: false\n");
  line_.kube_reserved = {"cpu=500m"};
  line_.cgroup_root = {"/b"};
  line_.cgroups_per_qos = {"true"};
  line_.reserved_cpus = {"0-1"};
  EXPECT_EQ(setting("kubeReserved", "cpu"), "\"500m\" --kube-reserved");
  EXPECT_EQ(setting("kubeReserved", "memory"), "");
  EXPECT_EQ(setting("cgroupRoot"), "\"/b\" --cgroup-root");
  EXPECT_EQ(setting("cgroupsPerQOS"), "true --cgroups-per-qos");
  EXPECT_EQ(setting("reservedSystemCPUs"), "\"0-1\" --reserved-cpus");
}

TEST_F(DropIns, ADirectoryGivenByFlagIsUsed) {
  main("");
  drop_in("1.yaml", "maxpods: 1");
  std::filesystem::create_directory(dir_.path() / "other");
  dir_.write("other/1.yaml", "maxPods: 3");
  line_.config_dir = {dir_.path() / "other"};
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
  EXPECT_EQ(setting("maxPods"), "3 1.yaml:1");
  line_.config_dir = {dir_.path() / "none"};
  EXPECT_EQ(diagnostics(), (std::vector<std::string>{"none: No such file or directory"}));
}

TEST_F(DropIns, MergedDefaultsAreMarkedAsDefault) {
  main("evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n");
  EXPECT_EQ(setting("evictionHard", "nodefs.available"), "\"10%\" default");
  EXPECT_EQ(setting("evictionHard", "memory.available"), "\"1Gi\" f:3");
}

// What is printed says the same when it is read.
TEST_F(DropIns, TheActiveConfigurationCanBeLoadedAgain) {
  main(
      "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 9s}\n"
      "kubeReserved: {cpu: 500m}\nheadroom: {reclaim: {images: [/bin/true, \"a b\"]}}\n");
  const LoadResult first = read();
  ASSERT_TRUE(first.diagnostics.empty());
  dir_.write("f", as_yaml(first.config.settings));
  const LoadResult again = read();
  EXPECT_EQ(diagnostics(), std::vector<std::string>{});
  ASSERT_EQ(first.config.settings.size(), again.config.settings.size());
  for (std::size_t i = 0; i < first.config.settings.size(); ++i)
    EXPECT_EQ(first.config.settings[i].value, again.config.settings[i].value)
        << first.config.settings[i].path;
  EXPECT_EQ(again.config.reclaim.images, (std::vector<std::string>{"/bin/true", "a b"}));
}

TEST(ConfigSettings, AsYamlWithTheirOrigins) {
  EXPECT_EQ(as_yaml({{"evictionHard", "memory.available", "\"1Gi\"", "f:3"},
                     {"headroom.listen", "", "\"\"", "default", "\"x\"", "f:9"},
                     {"headroom.disk.nodefs", "", "null", "default"}}),
            "apiVersion: kubelet.config.k8s.io/v1beta1\n"
            "kind: KubeletConfiguration\n"
            "evictionHard:\n"
            "  memory.available: \"1Gi\"                       # f:3\n"
            "headroom:\n"
            "  listen: \"\"                                    # default; from the next start "
            "\"x\", f:9\n"
            "  disk:\n"
            "#    nodefs:                                    # default\n");
}

TEST(ConfigSettings, RestartOnlySettingsStayUntilARestart) {
  const ConfigSettings running{{"headroom.listen", "", "\"a\"", "default"},
                               {"headroom.mode", "", "\"observe\"", "default"}};
  const ConfigSettings now = keep_restart_settings(
      {{"headroom.listen", "", "\"b\"", "f:1"}, {"headroom.mode", "", "\"enforce\"", "f:2"}},
      running);
  EXPECT_EQ(now[0].value, "\"a\"");
  EXPECT_EQ(now[0].next, "\"b\"");
  EXPECT_EQ(now[0].next_origin, "f:1");
  EXPECT_EQ(now[1].value, "\"enforce\"");
  // And back again.
  const ConfigSettings back = keep_restart_settings(running, now);
  EXPECT_EQ(back[0].value, "\"a\"");
  EXPECT_EQ(back[0].next, "");
}

}  // namespace
}  // namespace headroom::config
