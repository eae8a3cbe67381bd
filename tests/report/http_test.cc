// SPDX-License-Identifier: Apache-2.0
// The endpoint as a scraper meets it.
#include "report/http.h"

#include "base/fd.h"
#include "report/metrics.h"
#include "report/sample.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string get(int port, const std::string& path) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return "";
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::write(fd.get(), request.data(), request.size()) < 0) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  return answer;
}

std::shared_ptr<Metrics> sample_metrics() {
  auto shown = std::make_shared<Shown>();
  shown->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  return std::make_shared<Metrics>(
      MetricsSetup{.shown = shown, .now = [] { return sample_at(10'250); }});
}

TEST(Http, ServesTheMetrics) {
  const auto http = Http::open("127.0.0.1:0", sample_metrics());
  ASSERT_TRUE(http) << http.error().what;
  const std::string answer = get((*http)->port(), "/metrics");
  EXPECT_NE(answer.find("200 OK"), std::string::npos);
  EXPECT_NE(answer.find("headroom_mode{mode=\"enforce\"} 1"), std::string::npos);
}

TEST(Http, AnAddressInUseIsOneClearLine) {
  const auto first = Http::open("127.0.0.1:0", sample_metrics());
  ASSERT_TRUE(first);
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = Http::open(address, sample_metrics());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().what.find("listen on " + address + " for metrics: "), 0u)
      << second.error().what;
}

}  // namespace
}  // namespace headroom::report
