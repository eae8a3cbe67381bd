// SPDX-License-Identifier: Apache-2.0
// What the site is given about this host.
#include "config/temp_dir.h"
#include "daemon/config/system_containers.h"
#include "daemon/servers.h"
#include "daemon/sources/runtime_container_names.h"

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

std::vector<std::string> paths_of(const config::Config& config, const std::string& name) {
  for (const auto& container : system_containers(config))
    if (container.name == name) return container.paths;
  return {};
}

TEST(SystemContainers, OfAPlainHostAreSystemdsOwn) {
  const config::Config config;
  EXPECT_EQ(paths_of(config, "kubelet"), std::vector<std::string>{"/system.slice/kubelet.service"});
  EXPECT_EQ(paths_of(config, "misc"), std::vector<std::string>{"/system.slice"});
  EXPECT_EQ(paths_of(config, "pods"), std::vector<std::string>{"/kubepods.slice"});
  EXPECT_EQ(paths_of(config, "runtime").front(), "/system.slice/containerd.service");
}

TEST(SystemContainers, AreWhereTheConfigurationSays) {
  config::Config config;
  config.system_cgroups = {
      .kubelet = "", .misc = "", .kube_reserved = "/kube", .system_reserved = "system.slice"};
  EXPECT_EQ(paths_of(config, "kubelet"),
            (std::vector<std::string>{"/kube", "/kube.slice", "/system.slice/kubelet.service"}));
  EXPECT_EQ(paths_of(config, "misc").front(), "/system.slice");
}

std::string metrics_of(report::Router& router) {
  const report::HttpResponse answer = router.answer({.path = "/metrics"});
  std::string text, room(4096, '\0');
  while (const std::size_t size = answer.body->read(room))
    text.append(room, 0, size);
  return text;
}

TEST(MakeRouter, MetricsSayWhetherTheLastReloadSucceeded) {
  const auto reload = std::make_shared<report::ReloadStatus>();
  const auto router = make_router({}, std::make_shared<report::PublishedViews>(),
                                  std::make_shared<report::PublishedCpusView>(),
                                  std::make_shared<report::AdmissionCounts>(), nullptr, reload, {});
  EXPECT_NE(metrics_of(*router).find("\nheadroom_config_last_reload_successful 1\n"),
            std::string::npos);
  reload->set_successful(false);
  EXPECT_NE(metrics_of(*router).find("\nheadroom_config_last_reload_successful 0\n"),
            std::string::npos);
}

TEST(RuntimeContainerNames, RetriesForAWhileAndCaches) {
  const test::TempDir root;
  const std::string id(64, 'e');
  const auto bundle =
      root.path() / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / id / "config.json";
  RuntimeContainerNames names(nullptr, root.path());
  EXPECT_EQ(names.find(id), nullptr);
  std::filesystem::create_directories(bundle.parent_path());
  std::ofstream(bundle) << R"({"annotations": {"io.kubernetes.cri.container-name": "app"}})";
  ASSERT_NE(names.find(id), nullptr) << "the runtime wrote it down late";
  std::filesystem::remove(bundle);
  ASSERT_NE(names.find(id), nullptr) << "a name never changes";
  EXPECT_EQ(names.find(id)->container, "app");
}

TEST(RuntimeContainerNames, StopsRetryingAnUnknownContainer) {
  const test::TempDir root;
  const std::string id(64, 'e');
  RuntimeContainerNames names(nullptr, root.path());
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(names.find(id), nullptr);
  const auto bundle =
      root.path() / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / id / "config.json";
  std::filesystem::create_directories(bundle.parent_path());
  std::ofstream(bundle) << R"({"annotations": {}})";
  EXPECT_EQ(names.find(id), nullptr) << "it was looked for at every scrape";
}

}  // namespace
}  // namespace headroom::daemon
