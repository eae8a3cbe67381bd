// SPDX-License-Identifier: Apache-2.0
// The version of an API server, and the oldest one that headroom-kube reports to.
#pragma once

#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <compare>
#include <optional>
#include <stop_token>
#include <string>

namespace headroom::kube {

struct ServerVersion {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;
};

// The first version with everything that the DaemonSet and the reports use: the ConfigMap
// kube-root-ca.crt in every namespace is from 1.20. It is also the oldest that is tested.
inline constexpr ServerVersion kOldestServer{1, 20};

std::string to_string(const ServerVersion& version);  // "1.20"

// Of the answer to GET /version, which every authenticated client may ask. Some providers append to
// the minor version: "33+". Absent if the answer does not contain a version.
std::optional<ServerVersion> server_version(const HttpResponse& response);

// Whether the API server is too old; asked until it has answered once, at most once a minute. A
// server that does not answer is not too old: the requests that follow say what is wrong with it.
class VersionCheck {
 public:
  VersionCheck(const config::ServerConfig& server, const std::stop_token& stop)
      : client_(server), stop_(stop) {}

  // An error that says so, or nothing.
  Result<> ask();

 private:
  HttpClient client_;
  const std::stop_token stop_;
  bool supported_ = false;
  Instant next_{};
};

}  // namespace headroom::kube
