// SPDX-License-Identifier: Apache-2.0
// Servers of commands: what systemd does with headroom-commands.socket.
#pragma once

#include "base/file_io.h"
#include "config/temp_dir.h"

#include <headroom/units.h>

#include <sys/types.h>

#include <filesystem>
#include <list>
#include <string>
#include <thread>

namespace headroom::test {

// CLOCK_BOOTTIME
Instant clock_now();

// A socket of the kind that headroom-commands.socket makes.
Fd listen_at(const std::string& path, int backlog = 16);

// Serves each connection on a thread of this process.
class Commands {
 public:
  Commands();
  std::string path() const { return dir_.path() / "commands.sock"; }
  const std::filesystem::path& directory() const { return dir_.path(); }

 private:
  void accept_until(const std::stop_token& stop);

  TempDir dir_;
  Fd listening_;
  std::list<std::jthread> servers_;  // of accepting_
  std::jthread accepting_;
};

// Serves one connection after the other, in a process with the capabilities of
// headroom-commands@.service and a user other than root. The unit is read from the working
// directory.
class ConfinedCommands {
 public:
  static constexpr uid_t kUser = 61234;

  ConfinedCommands();
  ~ConfinedCommands();
  ConfinedCommands(const ConfinedCommands&) = delete;
  ConfinedCommands& operator=(const ConfinedCommands&) = delete;

  std::string path() const { return dir_.path() / "commands.sock"; }
  const std::filesystem::path& directory() const { return dir_.path(); }

 private:
  TempDir dir_;
  Fd listening_;
  pid_t server_ = -1;
};

}  // namespace headroom::test
