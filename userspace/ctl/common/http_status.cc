// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/http_status.h"

#include "base/file_io.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace headroom::ctl {
namespace {

constexpr timeval kTimeout{.tv_sec = 5, .tv_usec = 0};
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

struct AddressFree {
  void operator()(addrinfo* address) const { ::freeaddrinfo(address); }
};

Result<Fd> connect_to(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return failure("HEADROOM_HTTP: expected HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
    return failure("HEADROOM_HTTP: no address and port in " + address);
  const std::unique_ptr<addrinfo, AddressFree> owned(found);
  Fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_failure("make a socket", errno);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0)
    return errno_failure("connect to " + address, errno);
  return fd;
}

// Until the server closes the connection.
Result<std::string> read_all(const Fd& fd) {
  std::string text;
  std::array<char, 65'536> buffer{};
  while (text.size() <= kMaxBytes) {
    const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_failure("read the status over HTTP", errno);
    if (bytes == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  return failure("read the status over HTTP: the answer is too long");
}

std::optional<std::size_t> content_length(std::string_view headers) {
  constexpr std::string_view kName = "\r\nContent-Length: ";
  const std::size_t at = headers.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view value = headers.substr(at + kName.size());
  std::size_t length = 0;
  const auto [_, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  return error == std::errc() ? std::optional(length) : std::nullopt;
}

Result<std::string> body_of(const std::string& answer) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t end = answer.find(kEnd);
  // "HTTP/1.1 200 OK"
  if (end == std::string::npos || !answer.starts_with("HTTP/1.") || answer.substr(9, 3) != "200")
    return failure("read the status over HTTP: " + answer.substr(0, answer.find('\r')));
  std::string body = answer.substr(end + kEnd.size());
  if (content_length(std::string_view(answer).substr(0, end)).value_or(body.size()) != body.size())
    return failure("read the status over HTTP: the answer is cut off");
  return body;
}

}  // namespace

std::string http_address() {
  const char* const set = std::getenv("HEADROOM_HTTP");
  return set ? set : "127.0.0.1:9750";
}

Result<std::string> fetch_status_over_http(const std::string& address) {
  const auto fd = connect_to(address);
  if (!fd) return tl::make_unexpected(fd.error());
  // 1.0: the server closes the connection and does not send chunks.
  const std::string request = "GET /api/status HTTP/1.0\r\nHost: " + address + "\r\n\r\n";
  if (::send(fd->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return errno_failure("ask " + address + " for the status", errno);
  const auto answer = read_all(*fd);
  return answer ? body_of(*answer) : answer;
}

}  // namespace headroom::ctl
