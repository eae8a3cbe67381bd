// SPDX-License-Identifier: Apache-2.0
#include "act/exec/command_message.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

constexpr std::uint32_t kVersion = 0x48434d01;  // "HCM", 1
constexpr std::uint32_t kInBackground = 1, kInCgroup = 2;

// The user's name and the words of the command follow, `strings` in all, with a NUL each.
struct RequestHeader {
  std::uint32_t version;
  std::uint32_t flags;
  std::uint64_t time_limit;  // nanoseconds
  std::uint64_t data_limit;  // bytes; 0: none
  std::uint32_t strings;
  std::uint32_t padding;
};
static_assert(sizeof(RequestHeader) == 32);

struct Answer {
  std::uint32_t version;
  std::int32_t refused;
  std::int32_t result;
  char reason[256];
};
static_assert(sizeof(Answer) == 268);

// Room for more descriptors than a request may have, so that too many are seen as such.
constexpr std::size_t kMostDescriptors = 4;
using Control = std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)>;

void add_descriptor(msghdr& message, Control& control, int descriptor) {
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof descriptor);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

std::vector<Fd> take_descriptors(msghdr& message) {
  std::vector<Fd> taken;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

// Absent: there are not `count` strings that end with a NUL, and nothing else.
std::optional<std::vector<std::string>> split_strings(std::string_view text, std::uint32_t count) {
  std::vector<std::string> strings;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos || strings.size() == count) return std::nullopt;
    strings.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (strings.size() != count) return std::nullopt;
  return strings;
}

tl::unexpected<Error> ended_without_an_answer() {
  return failure("headroom-commands ended without an answer", ECONNABORTED);
}

bool is_valid(const RequestHeader& header) {
  return header.version == kVersion && (header.flags & ~(kInBackground | kInCgroup)) == 0 &&
         header.time_limit > 0 &&
         header.time_limit <= static_cast<std::uint64_t>(kMaxCommandTime.count());
}

Result<CommandRequest> parse_request(std::string_view bytes, std::vector<Fd> descriptors) {
  const auto invalid = [] { return failure("read a request: it has another form", EPROTO); };
  RequestHeader header{};
  if (bytes.size() < sizeof header) return invalid();
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_valid(header)) return invalid();
  auto strings = split_strings(bytes.substr(sizeof header), header.strings);
  const bool in_cgroup = (header.flags & kInCgroup) != 0;
  if (!strings || strings->size() < 2 || (*strings)[1].empty() ||
      descriptors.size() != (in_cgroup ? 1 : 0))
    return invalid();
  CommandRequest request;
  request.command.user = std::move(strings->front());
  request.command.argv.assign(std::make_move_iterator(strings->begin() + 1),
                              std::make_move_iterator(strings->end()));
  request.command.in_background = (header.flags & kInBackground) != 0;
  request.command.data_limit = header.data_limit;
  request.time_limit = Duration(static_cast<Duration::rep>(header.time_limit));
  if (in_cgroup) request.cgroup = std::move(descriptors.front());
  request.command.cgroup_procs = request.cgroup.get();
  return request;
}

}  // namespace

Result<> send_request(int connection, const Command& command, Duration time_limit) {
  std::string text = command.user + '\0';
  for (const std::string& word : command.argv)
    text += word + '\0';
  if (text.size() > kMaxCommandText) return errno_failure("send a command", E2BIG);
  const bool in_cgroup = command.cgroup_procs >= 0;
  RequestHeader header{
      .version = kVersion,
      .flags = (command.in_background ? kInBackground : 0) | (in_cgroup ? kInCgroup : 0),
      .time_limit =
          static_cast<std::uint64_t>(std::clamp(time_limit, Duration(1), kMaxCommandTime).count()),
      .data_limit = command.data_limit,
      .strings = static_cast<std::uint32_t>(1 + command.argv.size()),
      .padding = 0};
  iovec parts[] = {{&header, sizeof header}, {text.data(), text.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  alignas(cmsghdr) Control control{};
  if (in_cgroup) add_descriptor(message, control, command.cgroup_procs);
  if (::sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) return ended_without_an_answer();
    return errno_failure("send a command", errno);
  }
  return {};
}

Result<CommandRequest> receive_request(int connection) {
  std::vector<char> bytes(sizeof(RequestHeader) + kMaxCommandText);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return errno_failure("read a request", errno);
  std::vector<Fd> descriptors = take_descriptors(message);  // closed, if they are not wanted
  if (size == 0) return errno_failure("read a request", ECONNRESET);
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
    return failure("read a request: it is too long", EPROTO);
  return parse_request({bytes.data(), static_cast<std::size_t>(size)}, std::move(descriptors));
}

void send_cancellation(int connection) {
  // If it cannot be sent, the connection is closed, or will be.
  (void)!::send(connection, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

PeerState peer_state(int connection) {
  char byte = 0;
  const ssize_t size = ::recv(connection, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (size > 0) return PeerState::kCancelled;
  return size < 0 && errno == EAGAIN ? PeerState::kWaits : PeerState::kGone;
}

Result<> send_answer(int connection, const CommandAnswer& answer) {
  Answer sent{
      .version = kVersion, .refused = answer.refused, .result = answer.result, .reason = {}};
  answer.reason.copy(sent.reason, sizeof sent.reason - 1);
  if (::send(connection, &sent, sizeof sent, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof sent))
    return errno_failure("send an answer", errno);
  return {};
}

Result<CommandAnswer> receive_answer(int connection) {
  Answer received{};
  const ssize_t size = ::recv(connection, &received, sizeof received, MSG_DONTWAIT);
  if (size < 0 && errno != ECONNRESET) return errno_failure("read the answer", errno);
  if (size <= 0) return ended_without_an_answer();
  if (size != static_cast<ssize_t>(sizeof received) || received.version != kVersion)
    return failure("the answer of headroom-commands has another form", EPROTO);
  received.reason[sizeof received.reason - 1] = '\0';
  return CommandAnswer{
      .refused = received.refused, .result = received.result, .reason = received.reason};
}

}  // namespace headroom::act
