// SPDX-License-Identifier: Apache-2.0
// The taints of the node that headroom owns, among those of others. Pure.
//
// Taints are a list that has one owner as a whole (listType=atomic), so server-side apply would
// remove the taints of all other owners. Therefore the list is read, changed and written back with
// its resource version, as the node controllers do.
#pragma once

#include "kube/http_client.h"

#include <headroom/result.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::kube {

struct OwnTaint {
  std::string_view key;  // no other client uses this key
  std::string_view effect;
  std::optional<bool> wanted;  // absent: it stays as it is
};

std::string node_path(const std::string& node_name);
HttpRequest node_get(const std::string& node_name);

// The request that adds missing taints and removes surplus ones; absent if the taints are correct.
// `node` is the server's response to node_get(); an error says that it is not a Node.
Result<std::optional<HttpRequest>> own_taints_patch(const std::string& node_name,
                                                    const std::string& node,
                                                    std::span<const OwnTaint> own);

}  // namespace headroom::kube
