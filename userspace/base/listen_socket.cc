// SPDX-License-Identifier: Apache-2.0
#include "base/listen_socket.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include <netinet/in.h>

namespace headroom {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// "[::1]:9750" → "::1" and "9750"; the configuration has checked the form.
Result<Addresses> resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return failure(::gai_strerror(error));
  return Addresses(found);
}

Result<Fd> bound_to(const addrinfo& address) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_failure("socket", errno);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0)
    return errno_failure("bind", errno);
  constexpr int kListenBacklog = 128;
  if (::listen(fd.get(), kListenBacklog) != 0) return errno_failure("listen", errno);
  return fd;
}

}  // namespace

Result<Fd> listen_on(const std::string& address) {
  const auto addresses = resolve(address);
  if (!addresses) return tl::make_unexpected(addresses.error());
  return bound_to(**addresses);
}

int port_of(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  const auto* any = reinterpret_cast<const sockaddr_in*>(&address);  // same offset in sockaddr_in6
  return ntohs(any->sin_port);
}

}  // namespace headroom
