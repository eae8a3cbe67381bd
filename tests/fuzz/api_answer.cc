// SPDX-License-Identifier: Apache-2.0
// Answers of an API server, or of an impostor: their class, their error, when to try again.
#include "fuzz.h"
#include "kube/api/api_response.h"
#include "kube/api/server_version.h"

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  if (size < 2) return 0;
  const std::string body(fuzz::text_of(bytes + 2, size - 2));
  const kube::HttpResponse response{.status = 100 + 4 * bytes[0],
                                    .headers = {{"retry-after", body.substr(0, bytes[1])}},
                                    .body = body};
  (void)kube::api_status(response);
  (void)kube::not_found(response);
  (void)kube::is_server_error(response);
  (void)kube::server_version(response);
  const auto wait = kube::wait_after(bytes[1], bytes[0] / 256.0, kube::retry_after(response));
  fuzz::promise(wait > Duration::zero() && wait <= kube::kMaxRetryAfter + kube::kMaxRetryAfter / 4,
                "a server makes us wait, and not for ever");
  fuzz::promise(kube::error_text(response).size() < 4096, "an error is for a log line");
  return 0;
}
