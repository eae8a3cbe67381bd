// SPDX-License-Identifier: Apache-2.0
// AccessCheck: may a client with this bearer token read the metrics? The API server answers, by a
// TokenReview and a SubjectAccessReview, as for a kubelet with webhook authentication.
//
// An answer is kept for a while, so that a scrape needs no request. If the API server cannot be
// asked, the answer is an error, and nothing is served.
#pragma once

#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace headroom::kube {

enum class Access : std::uint8_t {
  kAllowed,
  kUnauthenticated,  // the token is none of the cluster's
  kForbidden,        // no role allows its user the verb "get" on this path
};

class AccessCheck {
 public:
  static constexpr Duration kAllowedFor = std::chrono::minutes(2);
  static constexpr Duration kRefusedFor = std::chrono::seconds(10);
  static constexpr std::size_t kMaxKept = 256;

  using Exchange = std::function<Result<HttpResponse>(const HttpRequest&)>;
  AccessCheck(Exchange exchange, std::function<Instant()> now)
      : exchange_(std::move(exchange)), now_(std::move(now)) {}

  // May be called on any thread; one request is sent at a time.
  Result<Access> check(const std::string& token, const std::string& path);

 private:
  struct Kept {
    Access access = Access::kForbidden;
    Instant until{};
  };
  using Key = std::pair<std::string, std::string>;  // a digest of the token; the path

  void keep(Key key, Access access);

  const Exchange exchange_;
  const std::function<Instant()> now_;
  std::mutex mutex_;
  std::map<Key, Kept> kept_;
};

}  // namespace headroom::kube
