// SPDX-License-Identifier: Apache-2.0
// The endpoint as scrapers meet it, and as those meet it who mean no good.
#include "report/http/server/http_server.h"

#include "base/file_io.h"
#include "config/temp_dir.h"
#include "report/sample.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace headroom::report {
namespace {

using namespace headroom::test;
using namespace std::chrono_literals;

Fd connected(int port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

void send(const Fd& fd, std::string_view text) {
  EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string rest_of(const Fd& fd) {
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  return answer;
}

std::string ask(int port, const std::string& request) {
  const Fd fd = connected(port);
  send(fd, request);
  return rest_of(fd);
}

std::string get(int port, const std::string& path, const std::string& headers = "") {
  return ask(port, "GET " + path + " HTTP/1.0\r\n" + headers + "\r\n");
}

// A table whose page is far larger than what sockets buffer.
CgroupTable many_cgroups(std::uint64_t count) {
  SampleNames names;
  std::vector<hr_record> records;
  for (std::uint64_t id = 1; id <= count; ++id) {
    records.push_back(full_record(id, id / 2));
    names.paths[id] = "/system.slice/unit-" + std::to_string(id) + std::string(150, 'x');
  }
  Snapshot snapshot;
  snapshot.cgroups = records;
  CgroupTable table;
  fill(table, nullptr, snapshot, &names);
  return table;
}

struct Served {
  std::shared_ptr<PublishedViews> views = std::make_shared<PublishedViews>();
  std::unique_ptr<HttpServer> http;
  int port = 0;
};

Served serve(std::uint64_t cgroups = 1, const HttpLimits& limits = {}) {
  Served served;
  served.views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  served.views->cgroups.publish(
      [&](CgroupTable& next, const CgroupTable*) { next = many_cgroups(cgroups); });
  auto http = HttpServer::open(
      "127.0.0.1:0",
      std::make_shared<Router>(
          MetricsSetup{.views = served.views, .now = [] { return sample_at(10'250); }},
          SummarySetup{.views = served.views}),
      limits);
  EXPECT_TRUE(http) << http.error().what;
  served.http = std::move(*http);
  served.port = served.http->port();
  return served;
}

TEST(HttpServer, ServesTheMetrics) {
  const Served served = serve();
  const std::string answer = get(served.port, "/metrics");
  EXPECT_NE(answer.find("200 OK"), std::string::npos);
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos)
      << answer.substr(0, 300);
  EXPECT_NE(answer.find("headroom_mode{mode=\"enforce\"} 1"), std::string::npos);
}

TEST(HttpServer, ServesOpenMetricsOnRequest) {
  const Served served = serve();
  const std::string answer =
      get(served.port, "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
  EXPECT_NE(answer.find("Content-Type: application/openmetrics-text; version=1.0.0"),
            std::string::npos)
      << answer.substr(0, 300);
  EXPECT_TRUE(answer.ends_with("\n# EOF\n"));
}

TEST(HttpServer, ServesThePageWithItsPolicy) {
  const Served served = serve();
  const std::string answer = get(served.port, "/");
  EXPECT_NE(answer.find("Content-Type: text/html; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'; script-src 'sha256-"),
            std::string::npos);
  EXPECT_NE(answer.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("</html>\n"));
}

TEST(HttpServer, ABadQueryIsRefused) {
  const Served served = serve();
  EXPECT_NE(get(served.port, "/api/evictions?last=many").find(" 400 "), std::string::npos);
  EXPECT_NE(get(served.port, "/api/evictions?last=3").find(" 200 "), std::string::npos);
}

TEST(HttpServer, AnUnchangedLogIsNotSentAgain) {
  const Served served = serve();
  TempDir dir;
  const std::string log = (dir.path() / "evictions.jsonl").string();
  std::ofstream(log) << "{}\n";
  served.views->node.publish([&](NodeView& next, const NodeView*) { next.audit_log = log; });
  const std::string first = get(served.port, "/api/evictions");
  const std::size_t at = first.find("ETag: ");
  ASSERT_NE(at, std::string::npos) << first;
  const std::string tag = first.substr(at + 6, first.find('\r', at) - at - 6);
  const std::string again = get(served.port, "/api/evictions", "If-None-Match: " + tag + "\r\n");
  EXPECT_NE(again.find(" 304 "), std::string::npos) << again;
  EXPECT_TRUE(again.ends_with("\r\n\r\n")) << again;
}

TEST(HttpServer, ALargePageArrivesWhole) {
  const Served served = serve(500);
  const std::string answer = get(served.port, "/metrics/cadvisor");
  EXPECT_GT(answer.size(), 2u << 20);
  std::size_t samples = 0;
  for (std::size_t at = 0; (at = answer.find("\ncontainer_threads{", at)) != answer.npos; ++at)
    ++samples;
  EXPECT_EQ(samples, 500u);
}

TEST(HttpServer, OneConnectionServesManyScrapes) {
  const Served served = serve();
  const Fd fd = connected(served.port);
  for (int i = 0; i < 3; ++i) {
    send(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string answer;
    char buffer[4096];
    while (answer.find("\r\n0\r\n\r\n") == std::string::npos) {  // the last chunk
      const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
      ASSERT_GT(n, 0);
      answer.append(buffer, static_cast<std::size_t>(n));
    }
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  }
}

TEST(HttpServer, AnswersWhatItDoesNotServe) {
  const Served served = serve();
  struct Case {
    const char* request;
    const char* status;
  };
  for (const Case& each : {Case{"GET /metric HTTP/1.0\r\n\r\n", "404"},
                           {"GET /../etc/passwd HTTP/1.0\r\n\r\n", "404"},
                           {"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "405"},
                           {"DELETE /metrics HTTP/1.0\r\n\r\n", "405"},
                           {"HEAD /metrics HTTP/1.0\r\n\r\n", "200"},
                           {"GET /metrics?a=b&c=%00%ff HTTP/1.0\r\n\r\n", "200"},
                           {"GET /metrics HTTP/3.14\r\n\r\n", "400"}}) {
    const std::string answer = ask(served.port, each.request);
    EXPECT_EQ(answer.substr(answer.find(' ') + 1, 3), each.status)
        << each.request << answer.substr(0, 200);
  }
}

TEST(HttpServer, ForeignHostHeadersAreRejected) {
  const Served served = serve();
  for (const char* path : {"/", "/api/status", "/api/evictions", "/metrics", "/metrics/cadvisor",
                           "/metrics/fleet", "/metrics/resource", "/stats/summary", "/nothing"}) {
    EXPECT_EQ(get(served.port, path, "Host: localhost:1\r\n").find(" 421 "), std::string::npos)
        << path;
    EXPECT_NE(get(served.port, path, "Host: evil.example\r\n").find(" 421 "), std::string::npos)
        << path;
  }
}

TEST(HttpServer, TooLargeIsRefusedAndABodyDropped) {
  const Served served = serve();
  const std::string headers = "X: " + std::string(40'000, 'x') + "\r\n";
  EXPECT_NE(get(served.port, "/metrics", headers).find(" 431 "), std::string::npos);
  const std::string path = get(served.port, "/" + std::string(40'000, 'x'));
  EXPECT_NE(path.find(" 414 "), std::string::npos) << path;
  const std::string body(4 << 20, 'b');
  const std::string answer =
      ask(served.port,
          "POST / HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_NE(answer.find(" 405 "), std::string::npos) << answer;
}

TEST(HttpServer, ASlowClientDelaysNoOther) {
  const Served served = serve();
  std::vector<Fd> slow;
  for (int i = 0; i < 50; ++i)
    slow.push_back(connected(served.port));
  for (const char letter : std::string("GET /metrics HTTP/1.1\r\nHost: localhost")) {
    for (const Fd& each : slow)
      send(each, {&letter, 1});
    EXPECT_NE(get(served.port, "/metrics").find("headroom_mode"), std::string::npos);
  }
}

// A byte now and then is no silence; the whole of a request has its limit all the same.
TEST(HttpServer, ASlowClientIsDisconnected) {
  const Served served = serve(1, {.connections = 2, .idle_seconds = 5, .exchange = 1s});
  const Fd slow[] = {connected(served.port), connected(served.port)};
  const std::string_view request =
      "GET /metrics HTTP/1.1\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
  std::size_t sent = 0;
  const auto takes = [&](const Fd& fd) {
    return ::send(fd.get(), &request[sent], 1, MSG_NOSIGNAL) == 1;
  };
  while (sent < request.size() && takes(slow[0]) && takes(slow[1])) {
    ++sent;
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_GE(sent, 9u) << "it had its time";
  EXPECT_LT(sent, request.size());
  EXPECT_NE(get(served.port, "/").find("200 OK"), std::string::npos);
}

// Each exchange has its own limit: who asks again and again stays.
TEST(HttpServer, AConnectionIsReused) {
  const Served served = serve(1, {.exchange = 1s});
  const Fd fd = connected(served.port);
  for (int i = 0; i < 15; ++i) {
    send(fd, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char answer[1024];
    ASSERT_GT(::read(fd.get(), answer, sizeof(answer)), 0) << i;
    std::this_thread::sleep_for(100ms);
  }
}

TEST(HttpServer, SurvivesTheMalformed) {
  const Served served = serve();
  const std::string hostile[] = {
      "nonsense\r\n\r\n",
      std::string(100'000, 'A'),
      "GET /metrics HTTP/1.0\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
      std::string("\0\0\0\0\r\n\r\n", 8),
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  // TLS
      "GET /" + std::string(40'000, '%') + " HTTP/1.0\r\n\r\n",
  };
  for (const std::string& text : hostile) {
    const Fd fd = connected(served.port);
    ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(fd.get(), SHUT_WR);
    rest_of(fd);
    EXPECT_NE(get(served.port, "/").find("200 OK"), std::string::npos);
  }
}

// Who asks without waiting is answered in the order of the requests, and delays no other.
TEST(HttpServer, ManyRequestsAtOnceAreAnsweredInTheirOrder) {
  const Served served = serve();
  struct Case {
    const char* request;
    const char* status;
  };
  constexpr Case kCases[] = {
      {"HEAD / HTTP/1.1\r\nHost: localhost\r\n", "200"},
      {"GET /nothing HTTP/1.1\r\nHost: localhost\r\n", "404"},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n", "421"},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n", "405"}};
  constexpr std::size_t kRequests = 1000;
  std::string requests;
  std::vector<std::string> expected, statuses;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const Case& each = kCases[(7 * i + i / 4) % std::size(kCases)];
    requests += each.request;
    if (i + 1 == kRequests) requests += "Connection: close\r\n";
    requests += "\r\n";
    if (each.status == std::string_view("405")) requests += "GET / HTTP/1.1\r\n";
    expected.emplace_back(each.status);
  }
  const Fd fd = connected(served.port);
  send(fd, requests);
  EXPECT_NE(get(served.port, "/").find("200 OK"), std::string::npos);
  const std::string answers = rest_of(fd);
  constexpr std::string_view kLine = "HTTP/1.1 ";
  for (std::size_t at = 0; (at = answers.find(kLine, at)) != answers.npos; at += kLine.size())
    statuses.push_back(answers.substr(at + kLine.size(), 3));
  EXPECT_EQ(statuses, expected);
  EXPECT_NE(get(served.port, "/").find("200 OK"), std::string::npos);
}

TEST(HttpServer, HundredsOfSilentClientsDelayNoScrape) {
  const Served served = serve();
  std::vector<Fd> silent;
  for (int i = 0; i < 200; ++i)
    silent.push_back(connected(served.port));
  for (int i = 0; i < 50; ++i)
    send(silent[static_cast<std::size_t>(i)], "GET /metr");
  EXPECT_NE(get(served.port, "/metrics").find("headroom_mode"), std::string::npos);
}

TEST(HttpServer, ASilentClientIsDisconnected) {
  const Served served = serve(1, {.connections = 4, .idle_seconds = 1});
  std::vector<Fd> silent;
  for (int i = 0; i < 8; ++i)
    silent.push_back(connected(served.port));
  // It waits its turn, behind connections that time out.
  EXPECT_NE(get(served.port, "/metrics").find("headroom_mode"), std::string::npos);
}

// The page has no reader; the loop publishes on, and so does a third scraper get an answer.
TEST(HttpServer, AClientThatReadsNothingBlocksNothing) {
  const Served served = serve(3000, {.exchange = 1s});
  std::vector<Fd> stuck;
  for (int i = 0; i < HttpServer::kMaxConcurrentResponses; ++i) {
    stuck.push_back(connected(served.port));
    send(stuck.back(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char first = 0;
    ASSERT_EQ(::read(stuck.back().get(), &first, 1), 1);
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(served.views->cgroups.publish([](CgroupTable& next, const CgroupTable* views) {
      if (views) next.at = views->at;
    })) << i;
  const std::string turned_away = get(served.port, "/metrics");
  EXPECT_NE(turned_away.find(" 503 "), std::string::npos) << turned_away.substr(0, 200);
  EXPECT_NE(turned_away.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(served.http->rejected(), 1u);

  std::this_thread::sleep_for(1100ms);
  for (const Fd& fd : stuck) {
    const std::string cut = rest_of(fd);
    EXPECT_FALSE(cut.ends_with("\r\n0\r\n\r\n")) << "cut off, and yet it looks complete";
  }
  EXPECT_NE(get(served.port, "/").find("200 OK"), std::string::npos);
}

long resident_kb() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long size = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * (::sysconf(_SC_PAGESIZE) / 1024) : 0;
}

TEST(HttpServer, AScrapeNeedsBoundedMemory) {
  const Served served = serve(3000);
  const Fd fd = connected(served.port);
  const long before = resident_kb();
  send(fd, "GET /metrics/cadvisor HTTP/1.0\r\n\r\n");
  std::size_t total = 0;
  long most = 0;
  std::vector<char> buffer(1 << 16);
  for (ssize_t n; (n = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
    total += static_cast<std::size_t>(n);
    if (total % 16 == 0) most = std::max(most, resident_kb());
  }
  most = std::max(most, resident_kb());
  EXPECT_GT(total, 15u << 20);
  // The sanitizer's own memory comes on top of ours; the page as a whole would be all of `total`.
  EXPECT_LT((most - before) * 1024, static_cast<long>(total) / 2);
}

Instant fake_now;

std::unique_ptr<HttpServer> with_heartbeat(std::shared_ptr<Heartbeat> heartbeat,
                                           const std::shared_ptr<PublishedViews>& views,
                                           const HttpLimits& limits = {}) {
  auto http =
      HttpServer::open("127.0.0.1:0",
                       std::make_shared<Router>(
                           MetricsSetup{.views = views, .now = [] { return sample_at(10'250); }},
                           SummarySetup{.views = views}),
                       limits, std::move(heartbeat));
  EXPECT_TRUE(http) << http.error().what;
  return std::move(*http);
}

TEST(HttpServer, HealthIsTheAgeOfTheLoopsLastTurn) {
  fake_now = Instant(std::chrono::hours(1));
  const auto heartbeat = std::make_shared<Heartbeat>([] { return fake_now; });
  const auto http = with_heartbeat(heartbeat, std::make_shared<PublishedViews>());
  const auto status = [&](const char* path) { return get(http->port(), path).substr(9, 3); };
  EXPECT_EQ(status("/livez"), "200");
  EXPECT_EQ(status("/readyz"), "503") << "no sweep yet";
  heartbeat->set_ready();
  EXPECT_EQ(status("/readyz"), "200");
  EXPECT_EQ(status("/livez?verbose"), "200");
  fake_now += Heartbeat::kLongest - 1ms;
  EXPECT_EQ(status("/livez"), "200");
  fake_now += 1ms;
  EXPECT_EQ(status("/livez"), "503") << "the loop hangs";
  EXPECT_EQ(status("/readyz"), "503");
  EXPECT_TRUE(get(http->port(), "/livez").ends_with("the loop's last turn was 15 s ago\n"));
  heartbeat->beat();
  EXPECT_EQ(status("/livez"), "200");
  EXPECT_EQ(status("/livezz"), "404");
}

// Scrapes that take nothing, and more silent connections than there are places.
TEST(HttpServer, HealthWaitsForNoOtherRequest) {
  fake_now = Instant(std::chrono::hours(1));
  const auto views = std::make_shared<PublishedViews>();
  views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = many_cgroups(3000); });
  const auto http = with_heartbeat(std::make_shared<Heartbeat>([] { return fake_now; }), views,
                                   {.connections = 2, .idle_seconds = 30});
  std::vector<Fd> stuck;
  for (int i = 0; i < 2; ++i) {
    stuck.push_back(connected(http->port()));
    send(stuck.back(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char first = 0;
    ASSERT_EQ(::read(stuck.back().get(), &first, 1), 1);
  }
  for (int i = 0; i < 300; ++i)
    stuck.push_back(connected(http->port()));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(get(http->port(), "/livez").substr(9, 3), "200");
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
}

TEST(HttpServer, AnAddressInUseIsOneClearLine) {
  const Served first = serve();
  const std::string address = "127.0.0.1:" + std::to_string(first.port);
  const auto second =
      HttpServer::open(address, std::make_shared<Router>(MetricsSetup{}, SummarySetup{}));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().what,
            "listen on " + address + " for metrics: bind: Address already in use");
}

TEST(HttpServer, AnAddressThatIsNotOursIsOneClearLine) {
  const auto http =
      HttpServer::open("192.0.2.1:9750", std::make_shared<Router>(MetricsSetup{}, SummarySetup{}));
  ASSERT_FALSE(http);
  EXPECT_EQ(http.error().what.find("listen on 192.0.2.1:9750 for metrics: bind: "), 0u)
      << http.error().what;
}

}  // namespace
}  // namespace headroom::report
