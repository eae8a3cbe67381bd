// SPDX-License-Identifier: Apache-2.0
// What became of a request about the node.
#pragma once

#include "kube/api/pending_eviction.h"
#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <functional>
#include <optional>
#include <string>

namespace headroom::kube {

// Sends one request and returns its response.
using Exchange = std::function<Result<HttpResponse>(const HttpRequest&)>;

struct NodeSyncResult {
  ResponseClass response_class = ResponseClass::kDone;  // the first that is not kDone
  std::optional<Duration> retry_after{};
  std::string why{};
  bool any = false;  // a request was sent
};

// A conflict is sent again: another client changed the node in between.
NodeSyncResult classify_node_response(const Result<HttpResponse>& response);

}  // namespace headroom::kube
