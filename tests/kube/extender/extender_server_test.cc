// SPDX-License-Identifier: Apache-2.0
// The extender over HTTP and HTTPS: answers, refusals, and how long an answer takes.
#include "kube/extender/extender_server.h"

#include "config/temp_dir.h"
#include "kube/http_client.h"

#include <atomic>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

const WallTime kNow = *parse_rfc3339("2026-11-20T23:00:00Z");

class ExtenderServerTest : public testing::Test {
 protected:
  void open(const std::optional<ServerCertificate>& certificate = {}) {
    auto opened = ExtenderServer::open(
        "127.0.0.1:0", certificate,
        {.find = [](const std::string& node,
                    const UseSummary& use) { use(node == "known" ? &kKnown : nullptr); },
         .now = [] { return kNow; },
         .is_ready = [this] { return ready.load(); }});
    ASSERT_TRUE(opened) << opened.error().what;
    server = std::move(*opened);
    client.url = std::string(certificate ? "https" : "http") +
                 "://127.0.0.1:" + std::to_string(server->port());
    client.timeout = 20s;
  }
  HttpResponse ask(const std::string& method, const std::string& path, std::string body = "") {
    const auto response = http(client, {.method = method, .path = path, .body = std::move(body)});
    EXPECT_TRUE(response) << response.error().what;
    return response ? *response : HttpResponse{};
  }

  static inline const NodeSummary kKnown{.time = kNow, .cpu_contention = 0, .memory_left = 1};
  std::atomic<bool> ready = true;
  std::unique_ptr<ExtenderServer> server;
  config::ServerConfig client;
};

TEST_F(ExtenderServerTest, AnswersBothVerbs) {
  open();
  const std::string body = R"({"Pod":{},"NodeNames":["known","other"]})";
  EXPECT_EQ(Json::parse(ask("POST", "/filter", body).body)["NodeNames"], (Json{"known", "other"}));
  const HttpResponse scores = ask("POST", "/prioritize", body);
  EXPECT_EQ(*scores.header("content-type"), "application/json");
  EXPECT_EQ(Json::parse(scores.body)[0], (Json{{"Host", "known"}, {"Score", 10}}));
}

TEST_F(ExtenderServerTest, RefusesWhatIsNoSuchRequest) {
  open();
  EXPECT_EQ(ask("GET", "/filter").status, 405);
  EXPECT_EQ(ask("POST", "/bind", "{}").status, 404);
  EXPECT_EQ(ask("POST", "/filter", "{").status, 400);
  EXPECT_EQ(ask("POST", "/filter", std::string(100'000, '[')).status, 400);
  EXPECT_EQ(ask("POST", "/filter", std::string(kMaxExtenderBody + 1, ' ')).status, 413);
  EXPECT_EQ(ask("POST", "/filter", R"({"NodeNames":["known"]})").status, 200) << "it goes on";
}

TEST_F(ExtenderServerTest, IsReadyWhenTheNodesWereListed) {
  ready = false;
  open();
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("POST", "/filter", R"({"NodeNames":["known"]})").status, 200);
  ready = true;
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
}

TEST_F(ExtenderServerTest, ServesOverTls) {
  test::TempDir dir;
  const auto certificate = make_self_signed("localhost");
  ASSERT_TRUE(certificate);
  open(*certificate);
  client.tls_name = "localhost";
  client.ca_file = dir.write("ca.crt", certificate->certificate);
  EXPECT_EQ(ask("POST", "/filter", R"({"NodeNames":["known"]})").status, 200);
  client.tls_name.clear();
  client.ca_file.clear();
  client.url.replace(0, 5, "http");
  const auto plain = http(client, {.path = "/healthz"});
  EXPECT_FALSE(plain && plain->good()) << "never in the clear";
}

}  // namespace
}  // namespace headroom::kube
