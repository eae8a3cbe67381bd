// SPDX-License-Identifier: Apache-2.0
#include "act/exec/command_server.h"

#include "act/exec/child_process.h"
#include "act/exec/command_message.h"
#include "act/exec/credentials.h"

#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>

namespace headroom::act {
namespace {

constexpr int kRequestMs = 5000;  // from the connection to the request

// Of another user namespace it is another uid. The socket's mode says the same: this holds if the
// mode was changed.
Result<> check_peer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return errno_failure("read the credentials of the peer", errno);
  if (peer.uid != 0)
    return failure("refuse a connection of uid " + std::to_string(peer.uid), EACCES);
  return {};
}

Result<> wait_for_request(int connection) {
  pollfd ready{.fd = connection, .events = POLLIN, .revents = 0};
  const int count = ::poll(&ready, 1, kRequestMs);
  if (count < 0) return errno_failure("wait for a request", errno);
  if (count == 0) return errno_failure("wait for a request", ETIMEDOUT);
  return {};
}

// The first process of the cgroup. A file that only looks like cgroup.procs is refused: a command
// would leave no trace in it, and run with this process's limits.
Result<pid_t> process_in(int cgroup_procs) {
  struct statfs filesystem {};
  if (::fstatfs(cgroup_procs, &filesystem) != 0 || filesystem.f_type != CGROUP2_SUPER_MAGIC)
    return failure("run a command in a cgroup: the descriptor is not of a cgroup", EINVAL);
  std::ifstream file(of_process(::getpid(), ("fd/" + std::to_string(cgroup_procs)).c_str()));
  pid_t first = 0;
  if (!(file >> first) || first <= 0) return failure("find a process in the cgroup", ESRCH);
  return first;
}

Result<Child> start(CommandRequest& request) {
  if (request.cgroup) {
    const auto target = process_in(request.cgroup.get());
    if (!target) return tl::make_unexpected(target.error());
    request.command.target = *target;
  }
  return Child::start(request.command);
}

bool is_to_end(int connection, const CommandRequest& request) {
  const PeerState peer = peer_state(connection);
  return peer == PeerState::kCancelled || (peer == PeerState::kGone && !request.cgroup);
}

CommandAnswer refusal(const Error& error) {
  return {.refused = error.code != 0 ? error.code : EINVAL, .result = 0, .reason = error.what};
}

CommandAnswer run(int connection, Instant (*clock)()) {
  const Instant began = clock();
  auto request = receive_request(connection);
  if (!request) return refusal(request.error());
  auto child = start(*request);
  if (!child) return refusal(child.error());
  const int result = child->wait_unless([&] { return is_to_end(connection, *request); },
                                        began + request->time_limit, clock);
  return {.refused = 0, .result = result, .reason = {}};
}

}  // namespace

Result<> serve_command(const Fd& connection, Instant (*clock)()) {
  if (auto peer = check_peer(connection.get()); !peer) return peer;
  if (auto ready = wait_for_request(connection.get()); !ready) return ready;
  return send_answer(connection.get(), run(connection.get(), clock));
}

}  // namespace headroom::act
