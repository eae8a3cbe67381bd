// SPDX-License-Identifier: Apache-2.0
// Requests that headroom-commands receives, and answers that headroomd receives from it.
#include "act/exec/command_message.h"
#include "fuzz.h"

#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  int ends[2];
  // The longest message is below what a socket's buffer takes.
  if (size > 65536 || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const Fd sender(ends[0]), receiver(ends[1]);
  for (int i = 0; i < 2; ++i)
    if (::send(sender.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return 0;
  if (const auto request = act::receive_request(receiver.get())) {
    fuzz::promise(!request->command.argv.empty() && !request->command.argv.front().empty(),
                  "a request names a program");
    fuzz::promise(!request->cgroup, "there is no descriptor that was not sent");
    fuzz::promise(
        request->time_limit > Duration::zero() && request->time_limit <= act::kMaxCommandTime,
        "a command has a time limit");
  }
  if (const auto answer = act::receive_answer(receiver.get()))
    fuzz::promise(answer->reason.size() < 256, "a reason is for a log line");
  return 0;
}
