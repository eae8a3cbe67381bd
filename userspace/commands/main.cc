// SPDX-License-Identifier: Apache-2.0
// headroom-commands: runs one command for headroomd, which has not the privileges for it. systemd
// starts it for each connection of headroom-commands.socket; see headroomd(8), COMMANDS.
#include "act/exec/command_server.h"
#include "base/file_io.h"

#include <headroom/units.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <exception>
#include <iostream>
#include <string_view>

namespace {

using namespace headroom;

constexpr int kFailed = 1, kUsage = 2;

Instant boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

bool is_socket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

// The connection is moved away from standard input, which the command gets from /dev/null.
Fd take_connection() {
  Fd connection(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null || ::dup2(null.get(), STDIN_FILENO) < 0) return {};
  return connection;
}

int serve() {
  const Fd connection = take_connection();
  if (!connection) {
    std::cerr << "headroom-commands: cannot take the connection\n";
    return kFailed;
  }
  const auto served = act::serve_command(connection, &boot_time);
  if (served) return 0;
  std::cerr << "headroom-commands: " << served.error().what << "\n";
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::cout << "headroom-commands " HEADROOM_VERSION "\n";
    return 0;
  }
  if (argc != 1 || !is_socket(STDIN_FILENO)) {
    std::cerr << "headroom-commands is started by headroom-commands.socket; see headroomd(8)\n";
    return kUsage;
  }
  try {
    return serve();
  } catch (const std::exception& error) {
    std::cerr << "headroom-commands: " << error.what() << "\n";
    return kFailed;
  }
}
