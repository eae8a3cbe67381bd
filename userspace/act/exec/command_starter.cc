// SPDX-License-Identifier: Apache-2.0
#include "act/exec/command_starter.h"

#include "act/exec/command_message.h"
#include "base/log/journal.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace headroom::act {
namespace {

constexpr int kPollMs = 100;  // how soon a stop request is noticed
// After the deadline, for the answer that says so: headroom-commands kills the command itself.
constexpr Duration kAnswerTime = std::chrono::seconds(1);

Result<Fd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return errno_failure("connect to " + path, ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  // Not blocking: a full queue of connections is an error.
  Fd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return errno_failure("make a socket", errno);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_failure("connect to " + path + " (is headroom-commands.socket active?)", errno);
  return connection;
}

Result<Fd> send_to_commands(const Command& command, const std::string& socket,
                            Duration time_limit) {
  auto connection = connect_to(socket);
  if (!connection) return connection;
  if (auto sent = send_request(connection->get(), command, time_limit); !sent)
    return tl::make_unexpected(sent.error());
  return connection;
}

void log_failure(const std::string& program, const Error& error) {
  log::warning("the command {} was not run: {}", program, error.what);
}

int result_of(const std::string& program, int connection) {
  const auto answer = receive_answer(connection);
  if (!answer) {
    log_failure(program, answer.error());
    return answer.error().code;
  }
  if (answer->refused == 0) return answer->result;
  log_failure(program, Error{.what = answer->reason, .code = answer->refused});
  return answer->refused;
}

int wait_for_answer(const std::string& program, int connection, Instant deadline,
                    Instant (*clock)(), const std::stop_token& stop) {
  for (;;) {
    pollfd answered{.fd = connection, .events = POLLIN, .revents = 0};
    if (::poll(&answered, 1, kPollMs) > 0) return result_of(program, connection);
    if (stop.stop_requested()) return ECANCELED;
    if (clock() >= deadline + kAnswerTime) return ETIMEDOUT;
  }
}

}  // namespace

CommandConnection::~CommandConnection() {
  if (connection_) send_cancellation(connection_.get());
}

Result<RunningCommand> start_command(const Command& command, const std::string& socket,
                                     Duration time_limit) {
  const std::string program = command.argv.empty() ? "" : command.argv.front();
  if (socket.empty()) {
    auto child = Child::start(command);
    if (child) return RunningCommand(program, std::move(*child));
    log_failure(program, child.error());
    return tl::make_unexpected(child.error());
  }
  auto connection = send_to_commands(command, socket, time_limit);
  if (connection) return RunningCommand(program, CommandConnection(std::move(*connection)));
  log_failure(program, connection.error());
  return tl::make_unexpected(connection.error());
}

int RunningCommand::wait(Instant deadline, Instant (*clock)(), const std::stop_token& stop) {
  if (auto* const child = std::get_if<Child>(&where_)) return child->wait(deadline, clock, stop);
  const CommandConnection connection = std::move(std::get<CommandConnection>(where_));
  return wait_for_answer(program_, connection.get(), deadline, clock, stop);
}

}  // namespace headroom::act
