// SPDX-License-Identifier: Apache-2.0
// One request: what is sent, and what becomes of every kind of answer.
#include "kube/http_client.h"

#include "config/temp_dir.h"
#include "kube/small_server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using test::SmallServer;
using test::TempDir;
using namespace std::chrono_literals;

config::ServerConfig at(const std::string& url) {
  config::ServerConfig server;
  server.url = url;
  server.timeout = 2s;
  return server;
}

bool has(const std::string& request, const std::string& line) {
  return request.find("\r\n" + line + "\r\n") != std::string::npos;
}

TEST(Http, SendsTheRequestAndReadsTheAnswer) {
  SmallServer server([](const std::string&) {
    return SmallServer::answer(429, "{\"later\":1}", "Retry-After: 7\r\nX-Two:  words here \r\n");
  });
  const auto response =
      http(at(server.url()), {.method = "PATCH",
                              .path = "/api/v1/pods?fieldManager=headroom",
                              .headers = {{"Content-Type", "application/merge-patch+json"}},
                              .body = "{}"});
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->status, 429);
  EXPECT_FALSE(response->good());
  EXPECT_EQ(response->body, "{\"later\":1}");
  EXPECT_EQ(*response->header("retry-after"), "7");
  EXPECT_EQ(*response->header("x-two"), "words here");
  EXPECT_EQ(response->header("etag"), nullptr);
  const std::string request = server.requests().at(0);
  EXPECT_TRUE(request.starts_with("PATCH /api/v1/pods?fieldManager=headroom HTTP/1.1\r\n"));
  EXPECT_TRUE(has(request, "Content-Type: application/merge-patch+json"));
  EXPECT_TRUE(has(request, "Accept: application/json"));
  EXPECT_TRUE(request.ends_with("\r\n\r\n{}"));
  EXPECT_EQ(request.find("Authorization"), std::string::npos);
  EXPECT_EQ(request.find("Expect"), std::string::npos);
}

TEST(Http, ReadsTheTokenForEachRequest) {
  SmallServer server([](const std::string&) { return SmallServer::answer(200, "{}"); });
  TempDir dir;
  auto server_config = at(server.url());
  server_config.token_file = dir.write("token", "first\n");
  HttpClient client(server_config);
  ASSERT_TRUE(client.http({.path = "/pods"}));
  dir.write("token", "second");
  ASSERT_TRUE(client.http({.path = "/pods"}));
  const auto requests = server.requests();
  EXPECT_TRUE(has(requests.at(0), "Authorization: Bearer first"));
  EXPECT_TRUE(has(requests.at(1), "Authorization: Bearer second"));
}

struct BadToken {
  const char* name;
  const char* text;
};

TEST(Http, ATokenThatIsNoneIsNotSent) {
  SmallServer server([](const std::string&) { return SmallServer::answer(200, "{}"); });
  TempDir dir;
  auto server_config = at(server.url());
  server_config.token_file = dir.path() / "absent";
  EXPECT_FALSE(http(server_config, {.path = "/"}));
  for (const BadToken row : {BadToken{"empty", " \n"}, BadToken{"two", "one\r\nX-Evil: two"},
                             BadToken{"binary", "\x01\x02"}}) {
    server_config.token_file = dir.write(row.name, row.text);
    const auto response = http(server_config, {.path = "/"});
    ASSERT_FALSE(response) << row.name;
    EXPECT_NE(response.error().what.find("token"), std::string::npos) << response.error().what;
  }
  EXPECT_TRUE(server.requests().empty());
}

struct Failure {
  const char* name;
  SmallServer::Act act;
};

TEST(Http, HalfAnAnswerIsNone) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
  const Failure rows[] = {
      {"nothing", {.bytes = ""}},
      {"half of the body", {.bytes = head + "{\"kind\":"}},
      {"reset in the body", {.bytes = head + "{\"kind\":", .reset = true}},
      {"reset at once", {.bytes = "", .reset = true}},
      {"no HTTP", {.bytes = "SSH-2.0-OpenSSH_9.2\r\n"}},
      {"too late", {.bytes = head, .delay = 5s}},
  };
  for (const Failure& row : rows) {
    SmallServer server([&](const std::string&) { return row.act; });
    auto server_config = at(server.url());
    server_config.timeout = 500ms;
    const auto response = http(server_config, {.path = "/pods"});
    ASSERT_FALSE(response) << row.name << ": " << response->body;
    EXPECT_TRUE(response.error().what.starts_with("GET " + server.url() + "/pods: "))
        << response.error().what;
  }
}

TEST(Http, MoreThanIsAskedForIsAnError) {
  SmallServer server(
      [](const std::string&) { return SmallServer::answer(200, std::string(5000, 'x')); });
  const auto response = http(at(server.url()), {.path = "/", .max_body = 4999});
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().what.find("longer than 4999 bytes"), std::string::npos);
  EXPECT_TRUE(http(at(server.url()), {.path = "/", .max_body = 5000}));
}

// Of what is resident, in bytes; counted anew from here on.
std::size_t most_resident(bool anew = false) {
  if (anew) std::ofstream("/proc/self/clear_refs") << 5;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  return 0;
}

// The limit is on what is unpacked, and it is refused while it is unpacked.
TEST(Http, ASmallAnswerThatUnpacksToMoreThanIsAskedForIsAnError) {
  constexpr std::size_t kUnpacked = 64 << 20, kLimit = 1 << 20;
  TempDir dir;
  const std::string file = (dir.path() / "packed").string();
  const std::string once = "head -c " + std::to_string(kUnpacked) + " /dev/zero | gzip";
  for (const auto& [encoding, packed] :
       {std::pair("gzip", once), std::pair("gzip, gzip", once + " | gzip")}) {
    SCOPED_TRACE(encoding);
    ASSERT_EQ(std::system((packed + " > " + file).c_str()), 0);
    std::ostringstream body;
    body << std::ifstream(file).rdbuf();
    ASSERT_LT(body.str().size(), kLimit / 10);
    const std::string header = std::string("Content-Encoding: ") + encoding + "\r\n";
    SmallServer server(
        [&](const std::string&) { return SmallServer::answer(200, body.str(), header); });
    const std::size_t before = most_resident(true);
    const auto response = http(at(server.url()), {.path = "/", .max_body = kLimit});
    EXPECT_LT(most_resident() - before, kUnpacked / 4);
    ASSERT_FALSE(response);
    EXPECT_NE(response.error().what.find("longer than 1048576 bytes"), std::string::npos)
        << response.error().what;
    EXPECT_NE(server.requests().at(0).find("\r\nAccept-Encoding: "), std::string::npos);
    auto patient = at(server.url());
    patient.timeout = 20s;
    const auto whole = http(patient, {.path = "/", .max_body = kUnpacked});
    ASSERT_TRUE(whole) << whole.error().what;
    EXPECT_EQ(whole->body.size(), kUnpacked);
  }
}

TEST(Http, NoServerIsAnErrorThatSaysWhere) {
  const auto response = http(at("http://127.0.0.1:1"), {.path = "/pods"});
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().what.find("127.0.0.1"), std::string::npos) << response.error().what;
}

// A bearer token goes to the server it was meant for, and to no other.
TEST(Http, GoesNowhereElse) {
  SmallServer other([](const std::string&) { return SmallServer::answer(200, "{}"); });
  SmallServer server([&](const std::string&) {
    return SmallServer::answer(302, "", "Location: " + other.url() + "/pods\r\n");
  });
  const auto response = http(at(server.url()), {.path = "/pods"});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 302);
  EXPECT_TRUE(other.requests().empty());
}

// openssl(1) as a server on a port of its own, which writes what it receives to a file.
class TlsServer {
 public:
  TlsServer(const TempDir& dir, const std::string& name) : base_((dir.path() / name).string()) {
    const std::string command =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test "
        "-addext subjectAltName=IP:127.0.0.1 -keyout " +
        base_ + ".key -out " + base_ + ".crt 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    SmallServer free_port([](const std::string&) { return SmallServer::answer(200, "{}"); });
    address_ = free_port.url().substr(std::string("http://").size());
  }
  ~TlsServer() {
    if (pid_ <= 0) return;  // kill(-1) would be for every process of the machine
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  void start() {
    const std::string key = base_ + ".key", certificate = base_ + ".crt", received = base_ + ".out";
    // It ends a connection when its standard input ends: this pipe stays open.
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd input(ends[0]);
    input_.reset(ends[1]);
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      ::dup2(input.get(), STDIN_FILENO);
      const int out = ::open(received.c_str(), O_WRONLY | O_CREAT, 0600);
      ::dup2(out, STDOUT_FILENO);
      ::execlp("openssl", "openssl", "s_server", "-quiet", "-accept", address_.c_str(), "-cert",
               certificate.c_str(), "-key", key.c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 500 && !listens(); ++i)
      std::this_thread::sleep_for(10ms);
  }
  // Before it listens, there is no connection for a request.
  bool listens() const {
    const auto response = http(at("http://" + address_), {.path = "/"});
    return !response && response.error().what.find("connect") == std::string::npos;
  }
  std::string url() const { return "https://" + address_; }
  std::string certificate() const { return base_ + ".crt"; }
  std::string received() const {
    std::ostringstream all;
    all << std::ifstream(base_ + ".out").rdbuf();
    return all.str();
  }

 private:
  std::string base_, address_;
  Fd input_;
  pid_t pid_ = 0;  // 0: not started
};

TEST(Http, SendsNoTokenToAServerWithoutATrustedCertificate) {
  TempDir dir;
  TlsServer impostor(dir, "impostor"), real(dir, "real");
  impostor.start();
  auto server_config = at(impostor.url());
  server_config.token_file = dir.write("token", "secret\n");
  server_config.ca_file = real.certificate();
  const auto refused = http(server_config, {.path = "/pods"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("certificate"), std::string::npos) << refused.error().what;
  EXPECT_EQ(impostor.received().find("secret"), std::string::npos);
  // It answers nothing, so this request ends with its timeout; but it was sent.
  server_config.ca_file = impostor.certificate();
  EXPECT_FALSE(http(server_config, {.path = "/pods"}));
  EXPECT_NE(impostor.received().find("Bearer secret"), std::string::npos);
}

TEST(Http, IsGivenUpWhenAskedTo) {
  SmallServer server(
      [](const std::string&) { return SmallServer::Act{.bytes = "", .delay = 20s}; });
  auto server_config = at(server.url());
  server_config.timeout = 30s;
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  const auto begun = std::chrono::steady_clock::now();
  const auto response = http(server_config, {.path = "/"}, stop.get_token());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ECANCELED);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

}  // namespace
}  // namespace headroom::kube
