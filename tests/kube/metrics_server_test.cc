// SPDX-License-Identifier: Apache-2.0
// headroomd's metrics over HTTPS: who gets them, and what the others get.
#include "kube/metrics/metrics_server.h"

#include "config/temp_dir.h"
#include "kube/metrics/server_certificate.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using test::TempDir;
using namespace std::chrono_literals;

// A server on a port of this machine, and a client that trusts its certificate.
class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_self_signed("localhost");
    ASSERT_TRUE(made) << made.error().what;
    certificate_ = *made;
    auto opened = MetricsServer::open("127.0.0.1:0", certificate_,
                                      {.check_access =
                                           [this](const std::string& token, const std::string&) {
                                             ++reviews_;
                                             return access(token);
                                           },
                                       .fetch =
                                           [this](const HttpRequest& request) {
                                             const std::lock_guard lock(mutex_);
                                             fetched_.push_back(request);
                                             return answer_;
                                           }});
    ASSERT_TRUE(opened) << opened.error().what;
    server_ = std::move(*opened);
    client_.url = "https://127.0.0.1:" + std::to_string(server_->port());
    client_.tls_name = "localhost";
    client_.ca_file = dir_.write("ca.crt", certificate_.certificate);
    client_.timeout = 20s;
  }

  static Result<Access> access(const std::string& token) {
    if (token == "good") return Access::kAllowed;
    if (token == "poor") return Access::kForbidden;
    if (token == "unheard") return failure("the API server does not answer");
    return Access::kUnauthenticated;
  }

  HttpResponse get(const std::string& path, const std::string& token,
                   const std::string& method = "GET") {
    client_.token_file = token.empty() ? "" : dir_.write("token", token).string();
    const auto response = http(client_, {.method = method, .path = path});
    EXPECT_TRUE(response) << response.error().what;
    return response ? *response : HttpResponse{};
  }

  TempDir dir_;
  ServerCertificate certificate_;
  config::ServerConfig client_;
  std::atomic<int> reviews_ = 0;
  Result<HttpResponse> answer_ = HttpResponse{
      .status = 200, .headers = {{"content-type", "text/x-metrics"}}, .body = "up 1\n"};
  std::mutex mutex_;
  std::vector<HttpRequest> fetched_;  // guarded by mutex_
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, AnAllowedClientGetsHeadroomdsAnswer) {
  const HttpResponse response = get("/metrics/cadvisor", "good");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "up 1\n");
  EXPECT_EQ(*response.header("content-type"), "text/x-metrics");
  ASSERT_EQ(fetched_.size(), 1U);
  EXPECT_EQ(fetched_[0].path, "/metrics/cadvisor");
  EXPECT_EQ(fetched_[0].method, "GET");
  // The client's token stays here.
  for (const auto& [name, value] : fetched_[0].headers)
    EXPECT_EQ(name, "Accept") << value;
}

TEST_F(MetricsServerTest, OthersAreRefusedWithTheReason) {
  struct Refused {
    const char *path, *token, *method;
    long status;
  };
  for (const Refused& row :
       {Refused{"/metrics", "", "GET", 401}, Refused{"/metrics", "bad", "GET", 401},
        Refused{"/metrics", "poor", "GET", 403}, Refused{"/metrics", "unheard", "GET", 503},
        Refused{"/metrics", "good", "POST", 405}, Refused{"/api/status", "good", "GET", 404},
        Refused{"/", "good", "GET", 404}, Refused{"/metrics/../api/status", "good", "GET", 404}}) {
    const HttpResponse response = get(row.path, row.token, row.method);
    EXPECT_EQ(response.status, row.status) << row.path << ' ' << row.token;
    EXPECT_EQ(response.header("www-authenticate") != nullptr, row.status == 401) << row.path;
  }
  EXPECT_TRUE(fetched_.empty());
}

TEST_F(MetricsServerTest, WithoutHeadroomdItSaysSo) {
  answer_ = failure("connection refused");
  EXPECT_EQ(get("/metrics", "good").status, 502);
  answer_ = HttpResponse{.status = 503, .body = "busy"};
  EXPECT_EQ(get("/metrics", "good").status, 503);
}

TEST_F(MetricsServerTest, SpeaksNoPlainHttp) {
  client_.url.replace(0, 5, "http");
  const auto response = http(client_, {.path = "/metrics"});
  EXPECT_FALSE(response && response->good());
  EXPECT_EQ(reviews_, 0);
}

TEST_F(MetricsServerTest, ManyClientsAtATimeAreAllAnswered) {
  answer_->body.assign(1 << 20, 'x');
  client_.token_file = dir_.write("token", "good");
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      const auto response = http(client_, {.path = "/metrics"});
      if (response && response->body.size() == 1 << 20) ++good;
    });
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(good, 8);
}

TEST_F(MetricsServerTest, AnAddressInUseIsAnError) {
  const std::string address = "127.0.0.1:" + std::to_string(server_->port());
  const auto second = MetricsServer::open(address, certificate_, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().what,
            "listen on " + address + " for metrics: bind: Address already in use");
}

TEST(ServerCertificate, IsReadWithItsKeyAlone) {
  TempDir dir;
  const auto one = make_self_signed("a").value(), other = make_self_signed("b").value();
  const auto certificate = dir.write("tls.crt", one.certificate);
  EXPECT_EQ(read_certificate(certificate, dir.write("tls.key", one.key)).value(), one);
  EXPECT_FALSE(read_certificate(certificate, dir.write("other.key", other.key)));
  EXPECT_FALSE(read_certificate(certificate, dir.write("bad.key", "no key")));
  const auto absent = read_certificate(dir.path() / "absent.crt", dir.path() / "tls.key");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().what,
            "open " + (dir.path() / "absent.crt").string() + ": No such file or directory");
}

TEST(BearerToken, IsWhatFollowsTheScheme) {
  const std::map<std::string, std::string> cases{
      {"Bearer abc", "abc"}, {"Basic abc", ""}, {"Bearer", ""}, {"", ""}, {"bearer abc", ""}};
  for (const auto& [header, token] : cases)
    EXPECT_EQ(bearer_token(header), token) << header;
}

}  // namespace
}  // namespace headroom::kube
