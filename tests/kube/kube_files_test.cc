// SPDX-License-Identifier: Apache-2.0
// What headroom-kube writes: pods' files, the kubelet's configuration, how it fares; and what it
// knows by itself.
#include "config/files.h"
#include "config/temp_dir.h"
#include "kube/health_file.h"
#include "kube/kube_config.h"
#include "kube/kubelet/pod_directory.h"
#include "kube/poll_backoff.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using namespace std::chrono_literals;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

ino_t inode_of(const fs::path& file) {
  struct stat info {};
  EXPECT_EQ(::stat(file.c_str(), &info), 0) << file;
  return info.st_ino;
}

TEST(PodDirectory, HoldsAFileForEachPodAndNoOther) {
  TempDir dir;
  const fs::path pods = dir.path() / "kube" / "pods";
  auto held = PodDirectory::open(pods);
  ASSERT_TRUE(held) << held.error().what;
  auto changes = held->sync({{"a", "one"}, {"b", "two"}});
  EXPECT_EQ(changes.written, 2u);
  EXPECT_EQ(names_in(pods), (std::set<std::string>{"a.json", "b.json"}));
  changes = held->sync({{"a", "one"}, {"c", "three"}});
  EXPECT_EQ(changes.written, 1u);
  EXPECT_EQ(changes.removed, 1u);
  EXPECT_EQ(names_in(pods), (std::set<std::string>{"a.json", "c.json"}));
  EXPECT_EQ(text_of(pods / "c.json"), "three");
}

TEST(PodDirectory, WritesOnlyWhatChanged) {
  TempDir dir;
  auto held = PodDirectory::open(dir.path() / "pods");
  ASSERT_TRUE(held);
  held->sync({{"a", "one"}, {"b", "two"}});
  const ino_t a = inode_of(dir.path() / "pods/a.json"), b = inode_of(dir.path() / "pods/b.json");
  EXPECT_EQ(held->sync({{"a", "one"}, {"b", "2"}}).written, 1u);
  EXPECT_EQ(inode_of(dir.path() / "pods/a.json"), a);
  EXPECT_NE(inode_of(dir.path() / "pods/b.json"), b) << "a new file, never half of one";
}

TEST(PodDirectory, TakesOverWhatAnEarlierRunLeft) {
  TempDir dir;
  const fs::path pods = dir.path() / "pods";
  PodDirectory::open(pods)->sync({{"a", "one"}, {"gone", "two"}});
  std::ofstream(pods / ".half.json") << "{";
  auto held = PodDirectory::open(pods);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->size(), 2u);
  const auto changes = held->sync({{"a", "one"}});
  EXPECT_EQ(changes.written, 0u);
  EXPECT_EQ(changes.removed, 1u);
  EXPECT_EQ(names_in(pods), std::set<std::string>{"a.json"});
}

TEST(PodDirectory, WhatCannotBeWrittenIsTriedAgain) {
  TempDir dir;
  const fs::path pods = dir.path() / "pods";
  auto held = PodDirectory::open(pods);
  ASSERT_TRUE(held);
  fs::create_directory(pods / "a.json");  // a rename fails on it, even root's
  auto changes = held->sync({{"a", "one"}, {"b", "two"}});
  EXPECT_EQ(changes.written, 1u);
  ASSERT_EQ(changes.failed.size(), 1u);
  fs::remove(pods / "a.json");
  changes = held->sync({{"a", "one"}, {"b", "two"}});
  EXPECT_EQ(changes.written, 1u);
  EXPECT_TRUE(changes.failed.empty());
}

std::string configz() {
  return text_of("tests/fixtures/kube/configz.json");
}

TEST(Configz, IsAConfigurationThatHeadroomAccepts) {
  const auto text = configuration_from(configz());
  ASSERT_TRUE(text) << text.error().what;
  TempDir dir;
  const auto config = test::load_file(dir.write("kubelet.yaml", *text));
  ASSERT_TRUE(config) << test::said(config).front();
  EXPECT_EQ(config->policy.max_pod_grace, 60s);
  EXPECT_TRUE(config->taints.empty()) << "the API server knows which it has";
  EXPECT_EQ(text->find("keyOfTomorrow"), std::string::npos);
  EXPECT_EQ(text->find("headroom"), std::string::npos);
}

// A kubelet's own file, or this answer put into one, is let in key by key: all but the one that no
// kubelet has yet.
TEST(Configz, AllOfAKubeletsKeysAreKnown) {
  auto all = nlohmann::ordered_json::parse(configz())["kubeletconfig"];
  all["apiVersion"] = "kubelet.config.k8s.io/v1beta1";
  all["kind"] = "KubeletConfiguration";
  all.erase("keyOfTomorrow");
  TempDir dir;
  const auto config = test::load_file(dir.write("f", all.dump(1)));
  EXPECT_EQ(test::said(config), std::vector<std::string>{});
}

TEST(Configz, NothingElseIsOne) {
  for (const char* answer : {"", "{", "[]", "{}", R"({"kubeletconfig":null})",
                             R"({"kubeletconfig":"x"})", R"({"kind":"Status","code":404})"})
    EXPECT_FALSE(configuration_from(answer)) << answer;
}

TEST(HealthFile, ShowsThePartsTogether) {
  TempDir dir;
  HealthFile health_file(dir.path() / "status.json");
  health_file.publish("kubelet", {{"lastPollSucceeded", true}});
  health_file.publish("api", {{"queued", 3}});
  const auto shown = nlohmann::json::parse(text_of(dir.path() / "status.json"));
  EXPECT_EQ(shown["kubelet"]["lastPollSucceeded"], true);
  EXPECT_EQ(shown["api"]["queued"], 3);
}

TEST(Backoff, DoublesUpToTheMostAndNeverInStep) {
  const Backoff backoff{.first = 1s, .max_wait = 30s};
  struct Row {
    unsigned failures;
    Duration whole;
  };
  for (const Row row :
       {Row{1, 1s}, Row{2, 2s}, Row{3, 4s}, Row{5, 16s}, Row{6, 30s}, Row{600, 30s}})
    for (const std::uint64_t dice : {std::uint64_t{0}, std::uint64_t{123456789}, UINT64_MAX}) {
      const Duration wait = backoff.after(row.failures, dice);
      EXPECT_GE(wait, row.whole / 2) << row.failures;
      EXPECT_LT(wait, row.whole) << row.failures;
    }
  EXPECT_NE(backoff.after(4, 1), backoff.after(4, 2));
}

const char* nothing(const char*) {
  return nullptr;
}
const char* in_a_pod(const char* name) {
  const std::string_view wanted = name;
  if (wanted == "KUBERNETES_SERVICE_HOST") return "fd00::1";
  if (wanted == "KUBERNETES_SERVICE_PORT") return "443";
  return wanted == "NODE_NAME" ? "node-7" : nullptr;
}

config::ServerConfig server_at(const char* url) {
  config::ServerConfig server;
  server.url = url;
  return server;
}

TEST(Whereabouts, TheNodesNameIsGivenOrFound) {
  config::Config config;
  EXPECT_FALSE(node_name_of(config, &nothing).empty()) << "the host's";
  EXPECT_EQ(node_name_of(config, &in_a_pod), "node-7");
  config.node_name = "given";
  EXPECT_EQ(node_name_of(config, &in_a_pod), "given");
}

TEST(Whereabouts, AServiceAccountIsFoundWhereNothingElseWasGiven) {
  TempDir dir;
  const fs::path account = dir.path() / "account";
  fs::create_directory(account);
  config::ServerConfig server = server_at("https://{nodeName}:10250");
  server.tls_name = "{nodeName}";
  EXPECT_TRUE(complete_server(server, "n1", account).token_file.empty()) << "there is none";
  std::ofstream(account / "token") << "t";
  std::ofstream(account / "ca.crt") << "c";
  const auto found = complete_server(server, "n1", account);
  EXPECT_EQ(found.url, "https://n1:10250");
  EXPECT_EQ(found.tls_name, "n1");
  EXPECT_EQ(found.token_file, account / "token");
  EXPECT_EQ(found.ca_file, account / "ca.crt");
  server.client_cert = "/c.pem";
  server.insecure = true;
  const auto completed = complete_server(server, "n1", account);
  EXPECT_TRUE(completed.token_file.empty() && completed.ca_file.empty());
  EXPECT_TRUE(
      complete_server(server_at("http://127.0.0.1:10255"), "n1", account).token_file.empty())
      << "nothing secret in the clear";
}

TEST(Whereabouts, TheApiServerIsWhereTheEnvironmentSays) {
  config::Config config;
  EXPECT_EQ(api_server(config, &nothing, "/nowhere").url, "");
  EXPECT_EQ(api_server(config, &in_a_pod, "/nowhere").url, "https://[fd00::1]:443");
  config.kubernetes.api.url = "https://api.example:6443";
  EXPECT_EQ(api_server(config, &in_a_pod, "/nowhere").url, "https://api.example:6443");
}

}  // namespace
}  // namespace headroom::kube
