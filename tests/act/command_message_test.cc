// SPDX-License-Identifier: Apache-2.0
// Messages to headroom-commands that are no requests.
#include "act/exec/command_message.h"

#include "act/exec/command_server.h"
#include "support/command_servers.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

// The first bytes of a request; see command_message.cc.
std::string request_text(std::uint32_t version, std::uint32_t flags, std::uint64_t time_limit,
                         std::uint32_t strings, std::string_view text) {
  std::string bytes(32, '\0');
  const std::uint64_t data_limit = 0;
  std::memcpy(bytes.data(), &version, 4);
  std::memcpy(bytes.data() + 4, &flags, 4);
  std::memcpy(bytes.data() + 8, &time_limit, 8);
  std::memcpy(bytes.data() + 16, &data_limit, 8);
  std::memcpy(bytes.data() + 24, &strings, 4);
  return bytes.append(text);
}

// The answer to a message; 0: the command was run.
int answer_to(const std::string& bytes, std::vector<int> descriptors = {}) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]), theirs(ends[1]);
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  }
  EXPECT_EQ(::sendmsg(ours.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(serve_command(theirs, &test::clock_now));
  const auto answer = receive_answer(ours.get());
  EXPECT_TRUE(answer) << answer.error().what;
  return answer ? answer->refused : -1;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(CommandMessage, InAnotherFormIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may ask for commands";
  constexpr std::uint32_t kVersion = 0x48434d01;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::string program("\0/bin/true\0", 11);  // no user, one word
  const std::size_t before = open_descriptors();
  EXPECT_EQ(answer_to(request_text(kVersion, 0, kSecond, 2, program)), 0) << "as it should be";
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<int> descriptors = {};
  };
  for (const auto& [name, bytes, descriptors] : {
           Case{"short", "HCM"},
           Case{"only_a_header", request_text(kVersion, 0, kSecond, 0, "")},
           Case{"other_version", request_text(kVersion + 1, 0, kSecond, 2, program)},
           Case{"unknown_flag", request_text(kVersion, 4, kSecond, 2, program)},
           Case{"no_time", request_text(kVersion, 0, 0, 2, program)},
           Case{"too_much_time", request_text(kVersion, 0, 86'401 * kSecond, 2, program)},
           Case{"negative_time", request_text(kVersion, 0, ~0ULL, 2, program)},
           Case{"fewer_strings", request_text(kVersion, 0, kSecond, 3, program)},
           Case{"more_strings", request_text(kVersion, 0, kSecond, 1, program)},
           Case{"many_strings", request_text(kVersion, 0, kSecond, ~0U, program)},
           Case{"no_end", request_text(kVersion, 0, kSecond, 2, program.substr(0, 10))},
           Case{"no_command", request_text(kVersion, 0, kSecond, 1, std::string(1, '\0'))},
           Case{"empty_command", request_text(kVersion, 0, kSecond, 2, std::string(2, '\0'))},
           Case{"too_long",
                request_text(kVersion, 0, kSecond, 2, std::string(kMaxCommandText + 1, 'x'))},
           Case{"cgroup_missing", request_text(kVersion, 2, kSecond, 2, program)},
           Case{"descriptor_unasked", request_text(kVersion, 0, kSecond, 2, program), {0}},
           Case{"two_descriptors", request_text(kVersion, 2, kSecond, 2, program), {0, 1}},
           Case{"many_descriptors",
                request_text(kVersion, 2, kSecond, 2, program),
                {0, 1, 2, 0, 1, 2, 0, 1}},
       })
    EXPECT_EQ(answer_to(bytes, descriptors), EPROTO) << name;
  EXPECT_EQ(open_descriptors(), before) << "descriptors that came along are closed";
}

}  // namespace
}  // namespace headroom::act
