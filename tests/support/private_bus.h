// SPDX-License-Identifier: Apache-2.0
// The system bus of a test: its own, or none.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace headroom::test {

// A private dbus-daemon, in the place of the system bus for as long as this lives.
class PrivateBus {
 public:
  PrivateBus() {
    std::array<int, 2> out{};
    if (::pipe(out.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--print-address", nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    std::array<char, 512> line{};
    const ssize_t length = ::read(out[0], line.data(), line.size());
    ::close(out[0]);
    if (length <= 0) return;
    address_.assign(line.data(), static_cast<std::size_t>(length));
    address_.resize(address_.find('\n'));
    ::setenv("DBUS_SYSTEM_BUS_ADDRESS", address_.c_str(), 1);
  }
  ~PrivateBus() {
    stop();
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
  }
  void stop() {
    if (pid_ <= 0) return;
    resume();
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // It takes what is sent to it, and delivers nothing.
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }
  bool runs() const { return !address_.empty(); }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

// There is no system bus for as long as this lives.
class NoBus {
 public:
  NoBus() { ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus", 1); }
  ~NoBus() { ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }
  NoBus(const NoBus&) = delete;
  NoBus& operator=(const NoBus&) = delete;
};

}  // namespace headroom::test
