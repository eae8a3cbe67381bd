// SPDX-License-Identifier: Apache-2.0
// headroomctl's second way to the status document: headroomd's own HTTP server, without a bus.
#include "base/file_io.h"
#include "config/temp_dir.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/status_document.h"
#include "ctl/status/kubernetes_lines.h"
#include "report/http/server/http_server.h"
#include "report/sample.h"

#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace headroom::ctl {
namespace {

using namespace headroom::test;

std::unique_ptr<report::HttpServer> serve(const std::filesystem::path& kubernetes) {
  const auto views = std::make_shared<report::PublishedViews>();
  views->node.publish([](auto& next, const auto*) { next = sample_node(); });
  views->cgroups.publish([](auto& next, const auto*) { next = sample_cgroups(); });
  auto http = report::HttpServer::open(
      "127.0.0.1:0",
      std::make_shared<report::Router>(
          report::MetricsSetup{.views = views, .now = [] { return sample_at(10'250); }},
          report::SummarySetup{.views = views}, report::PageRouterSetup{.kubernetes = kubernetes}),
      {});
  EXPECT_TRUE(http) << http.error().what;
  return std::move(*http);
}

// Answers one request with this text, whatever is asked.
class OneAnswer {
 public:
  explicit OneAnswer(std::string text) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, text = std::move(text)] {
      const Fd client(::accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      if (::read(client.get(), request, sizeof(request)) > 0) write_all(client.get(), text);
    });
  }
  ~OneAnswer() { thread_.join(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  Fd listener_;
  int port_ = 0;
  std::thread thread_;
};

class HttpStatus : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1); }
  void TearDown() override {
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    ::unsetenv("HEADROOM_HTTP");
  }
};

TEST_F(HttpStatus, IsReadWithoutABus) {
  const TempDir folder;
  const auto server =
      serve(folder.write("status.json", R"({"api": {"server": "https://10.96.0.1:443"}})"));
  ::setenv("HEADROOM_HTTP", ("127.0.0.1:" + std::to_string(server->port())).c_str(), 1);
  const auto document = fetch_status();
  ASSERT_TRUE(document) << document.error().what;
  const auto status = parse_status(*document);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->mode, "enforce");
  EXPECT_EQ(status->pods.size(), 3u);
  EXPECT_NE(api_line(*document).find("https://10.96.0.1:443"), std::string::npos) << *document;
}

TEST_F(HttpStatus, IsNotAskedForIfTheAddressIsEmpty) {
  ::setenv("HEADROOM_HTTP", "", 1);
  const auto document = fetch_status();
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().what, "cannot reach the system bus: No such file or directory");
}

TEST_F(HttpStatus, TheErrorOfTheBusIsShownIfBothFail) {
  ::setenv("HEADROOM_HTTP", "127.0.0.1:1", 1);
  const auto document = fetch_status();
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().what, "cannot reach the system bus: No such file or directory");
}

TEST_F(HttpStatus, TheDefaultAddressIsTheDefaultOfListen) {
  EXPECT_EQ(http_address(), "127.0.0.1:9750");
}

TEST(FetchStatusOverHttp, RefusesWhatIsNotAWholeAnswer) {
  struct Case {
    const char* answer;
    const char* error;
  };
  for (const Case& each : {
           Case{"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
                "read the status over HTTP: HTTP/1.1 403 Forbidden"},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
                "read the status over HTTP: the answer is cut off"},
           Case{"SSH-2.0-x\r\n", "read the status over HTTP: SSH-2.0-x"},
           Case{"", "read the status over HTTP: "},
       }) {
    const OneAnswer server(each.answer);
    const auto document = fetch_status_over_http(server.address());
    ASSERT_FALSE(document) << each.answer;
    EXPECT_EQ(document.error().what, each.error);
  }
}

TEST(FetchStatusOverHttp, RefusesAnAddressWithoutANumericHost) {
  for (const char* address : {"127.0.0.1", "some.name:9750", ":9750x", "[::1:9750"})
    EXPECT_FALSE(fetch_status_over_http(address)) << address;
}

}  // namespace
}  // namespace headroom::ctl
