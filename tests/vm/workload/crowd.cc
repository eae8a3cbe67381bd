// SPDX-License-Identifier: Apache-2.0
// crowd: HTTP clients that mean no good.
//
//   crowd PORT COUNT SECONDS
//
// Keeps COUNT connections to 127.0.0.1 open, for so long. By turns they say nothing, dribble a
// request byte by byte, ask for /metrics and read nothing, or send a header that never ends. Who is
// shown the door comes again. Prints how many were connected at most, and how often one was shown
// the door.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace {

enum class Manner { kSilent, kDribbling, kDeaf, kEndless };
constexpr int kManners = 4;

struct Client {
  Manner manner = Manner::kSilent;
  int fd = -1;
  std::size_t said = 0;
};

int connecting(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
                 errno != EINPROGRESS)) {
    std::perror("connect");
    std::exit(1);
  }
  return fd;
}

bool connected(const Client& client) {
  pollfd poll{.fd = client.fd, .events = POLLOUT, .revents = 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & POLLOUT) && !(poll.revents & POLLERR);
}

// Whatever was answered is left where it is by the deaf; the others find out that they are shut
// out.
bool shown_the_door(const Client& client) {
  pollfd poll{.fd = client.fd, .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void say(Client& client, std::string_view text) {
  const ssize_t n = ::send(client.fd, text.data(), text.size(), MSG_NOSIGNAL);
  if (n > 0) client.said += static_cast<std::size_t>(n);
}

void speak(Client& client) {
  static const std::string dribble = "GET /metrics HTTP/1.1\r\nX: " + std::string(8192, 'y');
  static const std::string flood = "GET / HTTP/1.1\r\nX: " + std::string(65536, 'z');
  constexpr std::string_view kAsk = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  switch (client.manner) {
    case Manner::kSilent:
      return;
    case Manner::kDribbling:
      return say(client, std::string_view(dribble).substr(client.said % dribble.size(), 1));
    case Manner::kDeaf:
      if (client.said == 0) say(client, kAsk);
      return;
    case Manner::kEndless:
      return say(client, flood);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  std::vector<Client> clients(static_cast<std::size_t>(std::atoi(argv[2])));
  const rlimit files{.rlim_cur = clients.size() + 64, .rlim_max = clients.size() + 64};
  ::setrlimit(RLIMIT_NOFILE, &files);
  for (std::size_t i = 0; i < clients.size(); ++i)
    clients[i] = {.manner = static_cast<Manner>(i % kManners), .fd = connecting(port)};

  std::size_t shut_out = 0, most = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  while (std::chrono::steady_clock::now() < end) {
    std::size_t there = 0;
    for (Client& client : clients) {
      if (!connected(client)) continue;
      ++there;
      speak(client);
      if (!shown_the_door(client)) continue;
      ++shut_out;
      ::close(client.fd);
      client = {.manner = client.manner, .fd = connecting(port)};
    }
    most = std::max(most, there);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::printf("%zu %zu\n", most, shut_out);
  return 0;
}
