// SPDX-License-Identifier: Apache-2.0
#include "kube/metrics/access_check.h"

#include "base/json_text.h"

#include <array>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxAnswer = std::size_t{1} << 20;  // bytes

std::string digest_of(const std::string& token) {
  std::array<char, 32> digest{};
  ::gnutls_hash_fast(GNUTLS_DIG_SHA256, token.data(), token.size(), digest.data());
  return {digest.data(), digest.size()};
}

HttpRequest review(const std::string& group, const std::string& kind, const std::string& resource,
                   Json spec) {
  const Json body{{"apiVersion", group + "/v1"}, {"kind", kind}, {"spec", std::move(spec)}};
  return {.method = "POST",
          .path = "/apis/" + group + "/v1/" + resource,
          .headers = {{"Content-Type", "application/json"}},
          .body = to_json_text(body),
          .max_body = kMaxAnswer};
}

HttpRequest token_review(const std::string& token) {
  return review("authentication.k8s.io", "TokenReview", "tokenreviews", {{"token", token}});
}

HttpRequest access_review(const Json& user, const std::string& path) {
  Json spec{{"nonResourceAttributes", {{"path", path}, {"verb", "get"}}},
            {"user", user.value("username", "")}};
  for (const char* name : {"uid", "groups", "extra"})
    if (user.contains(name)) spec[name] = user[name];
  return review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews",
                std::move(spec));
}

// The status of a review; an error if there is none.
Result<Json> status_of(const Result<HttpResponse>& response, const std::string& doing) {
  if (!response) return failure(doing + ": " + response.error().what);
  if (!response->good())
    return failure(doing + ": the API server answers " + std::to_string(response->status));
  Json body = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object() || !body.contains("status") || !body["status"].is_object())
    return failure(doing + ": the answer is no review");
  return std::move(body["status"]);
}

bool is_true(const Json& status, const char* name) {
  return status.contains(name) && status[name].is_boolean() && status[name].get<bool>();
}

// The user of a token; null: it is none of the cluster's.
Result<Json> user_of(const Result<HttpResponse>& response) {
  auto status = status_of(response, "review a token");
  if (!status) return tl::make_unexpected(status.error());
  if (!is_true(*status, "authenticated")) return Json();
  const auto user = status->find("user");
  if (user == status->end() || !user->is_object() || !user->contains("username") ||
      !(*user)["username"].is_string())
    return failure("review a token: the answer names no user");
  return Json(*user);
}

}  // namespace

Result<Access> AccessCheck::check(const std::string& token, const std::string& path) {
  Key key{digest_of(token), path};
  const std::lock_guard lock(mutex_);
  if (const auto known = kept_.find(key); known != kept_.end() && now_() < known->second.until)
    return known->second.access;
  const auto user = user_of(exchange_(token_review(token)));
  if (!user) return tl::make_unexpected(user.error());
  Access access = Access::kUnauthenticated;
  if (!user->is_null()) {
    const auto status =
        status_of(exchange_(access_review(*user, path)), "review an access to the metrics");
    if (!status) return tl::make_unexpected(status.error());
    access = is_true(*status, "allowed") && !is_true(*status, "denied") ? Access::kAllowed
                                                                        : Access::kForbidden;
  }
  keep(std::move(key), access);
  return access;
}

// If too many are kept, those that are over are dropped, and if that is not enough all of them: the
// next request of each client is reviewed again.
void AccessCheck::keep(Key key, Access access) {
  const Instant now = now_();
  if (kept_.size() >= kMaxKept)
    std::erase_if(kept_, [now](const auto& each) { return each.second.until <= now; });
  if (kept_.size() >= kMaxKept) kept_.clear();
  const Duration kept_for = access == Access::kAllowed ? kAllowedFor : kRefusedFor;
  kept_.insert_or_assign(std::move(key), Kept{access, now + kept_for});
}

}  // namespace headroom::kube
