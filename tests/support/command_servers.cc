// SPDX-License-Identifier: Apache-2.0
#include "support/command_servers.h"

#include "act/exec/command_server.h"

#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <gtest/gtest.h>

namespace headroom::test {

Instant clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Fd listen_at(const std::string& path, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  EXPECT_EQ(::listen(listening.get(), backlog), 0);
  return listening;
}

Commands::Commands()
    : listening_(listen_at(path())),
      accepting_([this](const std::stop_token& stop) { accept_until(stop); }) {}

void Commands::accept_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd ready{.fd = listening_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) <= 0) continue;
    auto connection =
        std::make_shared<Fd>(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    servers_.emplace_back([connection] { (void)act::serve_command(*connection, &clock_now); });
  }
}

namespace {

// The capabilities that a unit bounds its processes to, one bit each.
std::uint64_t bounding_set_of(const std::string& unit) {
  const std::map<std::string, int> numbers{{"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE},
                                           {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH},
                                           {"CAP_FOWNER", CAP_FOWNER},
                                           {"CAP_KILL", CAP_KILL},
                                           {"CAP_SETGID", CAP_SETGID},
                                           {"CAP_SETPCAP", CAP_SETPCAP},
                                           {"CAP_SETUID", CAP_SETUID},
                                           {"CAP_SYS_ADMIN", CAP_SYS_ADMIN},
                                           {"CAP_SYS_CHROOT", CAP_SYS_CHROOT},
                                           {"CAP_SYS_PTRACE", CAP_SYS_PTRACE}};
  const std::string key = "CapabilityBoundingSet=";
  std::ifstream file("systemd/" + unit);
  std::uint64_t set = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream names(line.substr(key.size()));
    for (std::string name; names >> name;)
      set |= std::uint64_t{1} << numbers.at(name);
  }
  return set;
}

// Another user with these capabilities and no others, as DynamicUser= and AmbientCapabilities= make
// it.
bool become(uid_t uid, std::uint64_t capabilities) {
  for (int each = 0; ::prctl(PR_CAPBSET_READ, each) >= 0; ++each)
    if ((capabilities >> each & 1) == 0) ::prctl(PR_CAPBSET_DROP, each);
  ::prctl(PR_SET_KEEPCAPS, 1);
  if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  for (int word = 0; word < 2; ++word)
    sets[word].permitted = sets[word].effective =
        static_cast<std::uint32_t>(capabilities >> (32 * word));
  ::prctl(PR_SET_DUMPABLE, 1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return ::syscall(SYS_capset, &header, sets) == 0;
}

}  // namespace

ConfinedCommands::ConfinedCommands() : listening_(listen_at(path())) {
  const std::uint64_t capabilities = bounding_set_of("headroom-commands@.service");
  EXPECT_NE(capabilities, 0u);
  server_ = ::fork();
  if (server_ != 0) return;
  if (!become(kUser, capabilities)) ::_exit(1);
  for (;;) {
    const Fd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    (void)act::serve_command(connection, &clock_now);
  }
}

ConfinedCommands::~ConfinedCommands() {
  if (server_ <= 0) return;
  ::kill(server_, SIGKILL);
  ::waitpid(server_, nullptr, 0);
}

}  // namespace headroom::test
