// SPDX-License-Identifier: Apache-2.0
// headroom.kubernetes, and what changes beside a kubelet: who only observes, what is refused, and
// whose configuration is the base.
#include "config/files.h"
#include "config/load/effective_settings.h"
#include "config/rows.h"
#include "config/thresholds_as_text.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_text;
using test::said;
using Lines = std::vector<std::string>;
using namespace std::chrono_literals;

std::string kubernetes(const std::string& text) {
  return "headroom:\n kubernetes:\n  " + text + "\n";
}

TEST(Kubernetes, NoRequestsByDefault) {
  const auto config = load_text("");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->kubernetes, KubernetesConfig{});
  EXPECT_TRUE(config->kubernetes.kubelet.url.empty());
  EXPECT_FALSE(config->kubernetes.api.needs_api());
  EXPECT_FALSE(config->kubelet_present);
}

TEST(Kubernetes, EveryKeyIsRead) {
  const auto config = load_text(R"(headroom:
 kubernetes:
  runDirectory: /run/kube
  stateDirectory: /var/kube
  kubelet: {url: "https://127.0.0.1:10250/", tlsServerName: "{nodeName}", caFile: /ca, tokenFile: /token,
            period: 5s, timeout: 2s, configz: true}
  api: {url: "https://[fd00::1]:6443", insecureSkipTLSVerify: true, clientCertFile: /c, clientKeyFile: /k,
        afterEviction: evict, events: false, conditions: true, taints: true}
  extender: {listen: "0.0.0.0:9753", certFile: /e.crt, keyFile: /e.key}
  scheduling: {softTaints: true, conditions: true, statusAnnotation: true, batchResources: true, contentionThreshold: 30%, shortageWithin: 2m}
  metrics: {listen: "0.0.0.0:9751", certFile: /tls.crt, keyFile: /tls.key}
)");
  ASSERT_TRUE(config) << said(config).front();
  const KubernetesConfig& loaded = config->kubernetes;
  EXPECT_EQ(loaded.pods_dir(), "/run/kube/pods");
  EXPECT_EQ(loaded.state_dir, "/var/kube");
  EXPECT_EQ(loaded.kubelet.url, "https://127.0.0.1:10250") << "paths begin with their own slash";
  EXPECT_EQ(loaded.kubelet.tls_name, "{nodeName}");
  EXPECT_EQ(loaded.kubelet.period, 5s);
  EXPECT_TRUE(loaded.kubelet.configz);
  EXPECT_EQ(loaded.api.after_eviction, ApiConfig::AfterEviction::kEvict);
  EXPECT_TRUE(loaded.api.needs_api() && loaded.api.insecure && loaded.api.conditions &&
              loaded.api.taints);
  EXPECT_FALSE(loaded.api.events);
  EXPECT_TRUE(loaded.scheduling.soft_taints && loaded.scheduling.conditions &&
              loaded.scheduling.annotation && loaded.scheduling.batch_resources &&
              loaded.scheduling.needs_api());
  EXPECT_EQ(loaded.extender, (ExtenderConfig{"0.0.0.0:9753", "/e.crt", "/e.key"}));
  EXPECT_FLOAT_EQ(static_cast<float>(loaded.scheduling.contention_threshold), 0.3F);
  EXPECT_EQ(loaded.scheduling.shortage_within, 2min);
  EXPECT_EQ(loaded.metrics,
            (MetricsServerConfig{
                .listen = "0.0.0.0:9751", .cert_file = "/tls.crt", .key_file = "/tls.key"}));
  EXPECT_TRUE(config->kubelet_present);
}

struct Bad {
  const char* name;
  const char* text;
  Lines said;
};
void PrintTo(const Bad& row, std::ostream* out) {
  *out << row.name;
}
class KubernetesBad : public testing::TestWithParam<Bad> {};

TEST_P(KubernetesBad, IsReported) {
  EXPECT_EQ(said(load_text(kubernetes(GetParam().text))), GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, KubernetesBad,
    testing::Values(
        Bad{"a_key_nobody_knows",
            "kubelet: {urls: x}",
            {"5: unknown key headroom.kubernetes.kubelet.urls, did you mean url?"}},
        Bad{"no_scheme",
            "kubelet: {url: 127.0.0.1:10250}",
            {"5: headroom.kubernetes.kubelet.url: expected https://HOST:PORT or http://HOST:PORT, "
             "found \"127.0.0.1:10250\""}},
        Bad{"a_path",
            "kubelet: {url: https://h:1/pods}",
            {"5: headroom.kubernetes.kubelet.url: expected https://HOST:PORT or http://HOST:PORT, "
             "found \"https://h:1/pods\""}},
        Bad{"a_password",
            "api: {url: https://me:secret@h}",
            {"5: headroom.kubernetes.api.url: expected https://HOST:PORT or http://HOST:PORT, "
             "found \"https://me:secret@h\""}},
        Bad{"a_token_in_the_clear",
            "kubelet: {url: http://127.0.0.1:10255, tokenFile: /token}",
            {"5: headroom.kubernetes.kubelet.tokenFile: is not sent in the clear: url is "
             "http://127.0.0.1:10255, expected https://"}},
        Bad{"two_minds",
            "kubelet: {url: https://h, insecureSkipTLSVerify: true, caFile: /ca}",
            {"5: headroom.kubernetes.kubelet.insecureSkipTLSVerify: makes caFile mean nothing: "
             "leave out one of them"}},
        Bad{"a_key_alone",
            "api: {clientKeyFile: /k}",
            {"5: headroom.kubernetes.api.clientKeyFile: needs clientCertFile"}},
        Bad{"never",
            "kubelet: {url: https://h, period: 0s}",
            {"5: headroom.kubernetes.kubelet.period: must be more than zero"}},
        Bad{"no_port",
            "metrics: {listen: 0.0.0.0}",
            {"5: headroom.kubernetes.metrics.listen: expected HOST:PORT such as 127.0.0.1:9750, or "
             "nothing for no endpoint, found \"0.0.0.0\""}},
        Bad{"a_certificate_alone",
            "metrics: {listen: \"[::]:9751\", certFile: /c}",
            {"5: headroom.kubernetes.metrics.certFile: needs keyFile"}},
        Bad{"a_certificates_key_alone",
            "metrics: {listen: \"[::]:9751\", keyFile: /k}",
            {"5: headroom.kubernetes.metrics.keyFile: needs certFile"}},
        Bad{"an_extender_in_the_clear",
            "extender: {listen: 0.0.0.0:9752}",
            {"5: headroom.kubernetes.extender.listen: beyond the loopback needs certFile and "
             "keyFile"}},
        Bad{"an_extender_nowhere",
            "extender: {listen: \"\"}",
            {"5: headroom.kubernetes.extender.listen: expected HOST:PORT such as 127.0.0.1:9752"}},
        Bad{"configz_of_nobody",
            "kubelet: {configz: true}",
            {"5: headroom.kubernetes.kubelet.configz: needs url: where the kubelet is"}}),
    test::RowName());

TEST(Kubernetes, AdviceNeedsReadings) {
  EXPECT_EQ(
      said(load_text("headroom:\n listen: \"\"\n kubernetes: {scheduling: {conditions: true}}\n")),
      Lines{"0: needs headroom.listen: headroomd's readings are fetched from there"});
}

TEST(Kubernetes, MetricsThatNobodyServesAreNotForwarded) {
  EXPECT_EQ(
      said(load_text("headroom:\n listen: \"\"\n kubernetes: {metrics: {listen: \"[::]:1\"}}\n")),
      Lines{"0: needs headroom.listen: headroomd's metrics "
            "are fetched from there"});
}

// --- beside a kubelet ------------------------------------------------------------------------

constexpr const char* kBeside = " kubernetes: {kubelet: {url: \"https://127.0.0.1:10250\"}}\n";

TEST(KubeletCoexistence, ObservesByDefault) {
  const auto config = load_text(std::string("headroom:\n") + kBeside);
  ASSERT_TRUE(config) << said(config).front();
  EXPECT_EQ(config->slices.mode, SlicesMode::kObserve);
  EXPECT_EQ(config->cpus.mode, CpusConfig::Mode::kObserve);
  const auto origin = [&](const char* path) {
    for (const ConfigSetting& each : config->settings)
      if (each.path == path) return each.value + " " + each.origin;
    return std::string();
  };
  EXPECT_EQ(origin("headroom.slices.mode"), "\"observe\" beside a kubelet");
  EXPECT_EQ(origin("headroom.cpus.mode"), "\"observe\" beside a kubelet");
  EXPECT_EQ(origin("headroom.oomScoreAdj"), "\"leave\" default");
}

TEST(KubeletCoexistence, AnExplicitModeWins) {
  const auto config =
      load_text(std::string("headroom:\n slices: {mode: off}\n cpus: {mode: \"off\"}\n") + kBeside);
  ASSERT_TRUE(config) << said(config).front();
  EXPECT_EQ(config->slices.mode, SlicesMode::kOff);
  EXPECT_EQ(config->cpus.mode, CpusConfig::Mode::kOff);
}

TEST(KubeletCoexistence, TwoWritersAreRejected) {
  const auto config = load_text(
      "cpuManagerPolicy: static\n"
      "reservedSystemCPUs: \"0\"\n"
      "headroom:\n slices: {mode: enforce}\n cpus: {mode: enforce}\n oomScoreAdj: mirror\n" +
      std::string(kBeside));
  EXPECT_EQ(said(config),
            (Lines{"6: headroom.slices.mode: a kubelet keeps the slices here, and writes over them "
                   "again and again; expected observe or off",
                   "7: headroom.cpus.mode: a kubelet assigns the CPUs here and does not know of "
                   "headroom's assignments; expected observe or off",
                   "8: headroom.oomScoreAdj: a kubelet sets oom_score_adj of its pods' processes; "
                   "expected leave"}));
}

// The key is not described: it may be obsolete, or new. A warning is given, and the value used.
TEST(KubeletCoexistence, ADetectedKubeletIsAWarning) {
  test::TempDir dir;
  CommandLine line;
  line.config = {
      dir.write("f", std::string(test::kHead) + "headroom: {slices: {mode: enforce}}\n")};
  const LoadResult loaded = read(line, {.kubelet_runs = true});
  ASSERT_TRUE(loaded.diagnostics.empty()) << to_string(loaded.diagnostics.front());
  EXPECT_EQ(loaded.config.slices.mode, SlicesMode::kEnforce);
  EXPECT_EQ(loaded.config.cpus.mode, CpusConfig::Mode::kObserve);
  ASSERT_EQ(kubelet_conflict_warnings(loaded.config).size(), 1u);
  EXPECT_TRUE(kubelet_conflict_warnings(loaded.config)[0].starts_with("headroom.slices.mode: "));
  EXPECT_TRUE(kubelet_conflict_warnings(read(line).config).empty()) << "none was found";
}

// --- the kubelet's own configuration ---------------------------------------------------------

class ConfigzAsBase : public ::testing::Test {
 protected:
  ConfigzAsBase() {
    file_ = dir_.write("headroom.yaml", std::string(test::kHead) +
                                            "evictionHard: {nodefs.available: 20%}\n"
                                            "headroom:\n kubernetes:\n  runDirectory: " +
                                            dir_.path().string() +
                                            "\n  kubelet: {url: https://h, configz: true}\n");
    line_.config = {file_};
  }
  void write(const std::string& text) { dir_.write("kubelet.yaml", test::kHead + text); }
  std::vector<std::string> thresholds(const LoadResult& loaded) const {
    return test::thresholds_as_text(loaded.config.policy.thresholds);
  }

  test::TempDir dir_;
  std::filesystem::path file_;
  CommandLine line_;
};

TEST_F(ConfigzAsBase, IsTheBaseOfTheConfiguration) {
  write("evictionHard: {memory.available: 350Mi, nodefs.available: 10%}\nmaxPods: 42\n");
  const LoadResult loaded = read(line_);
  ASSERT_TRUE(loaded.diagnostics.empty()) << to_string(loaded.diagnostics.front());
  EXPECT_FALSE(loaded.configz.empty());
  EXPECT_EQ(loaded.config.max_pods, 42);
  const auto all = thresholds(loaded);
  EXPECT_NE(std::ranges::find(all, "memory.available < 350Mi"), all.end());
  EXPECT_NE(std::ranges::find(all, "nodefs.available < 20%"), all.end()) << "ours wins";
  const auto setting = std::ranges::find(loaded.config.settings, "maxPods", &ConfigSetting::path);
  EXPECT_EQ(setting->origin, (dir_.path() / "kubelet.yaml").string() + ":4");
}

TEST_F(ConfigzAsBase, MayAppearLater) {
  const LoadResult before = read(line_);
  EXPECT_TRUE(before.diagnostics.empty());
  EXPECT_EQ(before.configz, "");
  EXPECT_EQ(before.config.max_pods, 110);
  write("maxPods: 42\n");
  const LoadResult after = read(line_);
  EXPECT_EQ(after.config.max_pods, 42);
  EXPECT_EQ(after.configz, configz_version(dir_.path() / "kubelet.yaml"));
  EXPECT_EQ(read(line_, {.use_configz = false}).config.max_pods, 110);
}

TEST_F(ConfigzAsBase, ErrorsInItHaveItsFileAndLine) {
  write("maxPods: many\n");
  const LoadResult loaded = read(line_);
  ASSERT_EQ(loaded.diagnostics.size(), 1u);
  EXPECT_TRUE(to_string(loaded.diagnostics[0])
                  .starts_with((dir_.path() / "kubelet.yaml").string() + ":3: maxPods"))
      << to_string(loaded.diagnostics[0]);
}

}  // namespace
}  // namespace headroom::config
