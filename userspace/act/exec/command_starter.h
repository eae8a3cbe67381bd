// SPDX-License-Identifier: Apache-2.0
// The side of headroomd: a command that runs in this process's child, or in headroom-commands.
#pragma once

#include "act/exec/child_process.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <stop_token>
#include <string>
#include <variant>

namespace headroom::act {

// A connection to headroom-commands: its command is cancelled at the end.
class CommandConnection {
 public:
  explicit CommandConnection(Fd connection) : connection_(std::move(connection)) {}
  ~CommandConnection();
  CommandConnection(CommandConnection&&) = default;
  CommandConnection& operator=(CommandConnection&&) = delete;

  int get() const { return connection_.get(); }

 private:
  Fd connection_;
};

// A command that was started. It is killed if the object is destroyed before wait().
class RunningCommand {
 public:
  // As Child::wait(). ECONNABORTED: headroom-commands ended; another errno: the reason for which it
  // refused the command. Both are logged.
  int wait(Instant deadline, Instant (*clock)(), const std::stop_token& stop);

 private:
  friend Result<RunningCommand> start_command(const Command& command, const std::string& socket,
                                              Duration time_limit);
  RunningCommand(std::string program, Child child)
      : program_(std::move(program)), where_(std::move(child)) {}
  RunningCommand(std::string program, CommandConnection connection)
      : program_(std::move(program)), where_(std::move(connection)) {}

  std::string program_;
  std::variant<Child, CommandConnection> where_;
};

// `socket`: the path of headroom-commands.socket; empty: the command is run by this process, as far
// as its privileges allow. `time_limit` is for headroom-commands; this process's is the deadline of
// wait(). Never waits for headroom-commands. A failure is logged with its reason.
Result<RunningCommand> start_command(const Command& command, const std::string& socket,
                                     Duration time_limit);

}  // namespace headroom::act
