// SPDX-License-Identifier: Apache-2.0
#include "report/page/host_check.h"

#include <strings.h>

#include <algorithm>

#include <arpa/inet.h>

namespace headroom::report {
namespace {

// "[::1]:9750" → "::1", "node.:80" → "node".
std::string without_port(std::string_view host) {
  if (host.starts_with("[")) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? "" : std::string(host.substr(1, end - 1));
  }
  host = host.substr(0, host.rfind(':'));
  if (host.ends_with(".")) host.remove_suffix(1);
  return std::string(host);
}

bool is_address(const std::string& host) {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool same_name(const std::string& a, const std::string& b) {
  return ::strcasecmp(a.c_str(), b.c_str()) == 0;
}

}  // namespace

bool is_allowed_host(std::string_view host, const std::vector<std::string>& names) {
  if (host.empty()) return true;
  const std::string name = without_port(host);
  if (name.empty()) return false;
  return is_address(name) || same_name(name, "localhost") ||
         std::any_of(names.begin(), names.end(),
                     [&](const std::string& ours) { return same_name(name, ours); });
}

}  // namespace headroom::report
