// SPDX-License-Identifier: Apache-2.0
#include "kube/api/node_response.h"

#include "kube/api/api_response.h"

namespace headroom::kube {

NodeSyncResult classify_node_response(const Result<HttpResponse>& response) {
  if (!response)
    return {.response_class = ResponseClass::kServerError,
            .retry_after = {},
            .why = response.error().what,
            .any = true};
  NodeSyncResult result{.response_class = ResponseClass::kDone, .any = true};
  if (response->good()) return result;
  result.why = kube::error_text(*response);
  result.retry_after = retry_after(*response);
  if (is_server_error(*response))
    result.response_class = ResponseClass::kServerError;
  else
    result.response_class = response->status == 409 || response->status >= 500
                                ? ResponseClass::kRetry
                                : ResponseClass::kRefused;
  return result;
}

}  // namespace headroom::kube
