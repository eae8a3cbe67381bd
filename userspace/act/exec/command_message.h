// SPDX-License-Identifier: Apache-2.0
// What headroomd and headroom-commands say to each other, on a connection of
// headroom-commands.socket (unix(7), SOCK_SEQPACKET): one request, one answer, each one message;
// between them headroomd may cancel the command. Both are of one package and one host: the numbers
// are in the host's byte order, and another version is refused.
#pragma once

#include "act/exec/child_process.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <string>

namespace headroom::act {

// Words of a command and the name of its user, with a NUL each. The kernel's default for a socket's
// buffer is 208 KiB.
inline constexpr std::size_t kMaxCommandText = std::size_t{64} << 10;
// The longest time that a command may run.
inline constexpr Duration kMaxCommandTime = std::chrono::hours(24);

struct CommandRequest {
  Command command;  // cgroup_procs is `cgroup`; no target: the receiver takes one of that cgroup
  Duration time_limit{0};
  Fd cgroup;  // cgroup.procs of the container's cgroup; none: a command of the operator
};

struct CommandAnswer {
  int refused = 0;     // errno: the command was not started, `reason` says why
  int result = 0;      // as Child::wait() returns it
  std::string reason;  // up to 255 bytes
};

// `cgroup_procs`: -1, or the descriptor that is sent along. E2BIG: the command is too long. Never
// waits: EAGAIN if the message does not fit. ECONNABORTED: the connection was closed.
Result<> send_request(int connection, const Command& command, Duration time_limit);
// EPROTO: it is no request of this version, or its descriptors are not those that it names.
// ECONNRESET: the connection was closed.
Result<CommandRequest> receive_request(int connection);

// What the peer did since its request.
enum class PeerState {
  kWaits,
  kCancelled,
  kGone,  // it closed the connection, or died
};
void send_cancellation(int connection);
PeerState peer_state(int connection);

Result<> send_answer(int connection, const CommandAnswer& answer);
// ECONNABORTED: the connection was closed without an answer.
Result<CommandAnswer> receive_answer(int connection);

}  // namespace headroom::act
