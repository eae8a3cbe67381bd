// SPDX-License-Identifier: Apache-2.0
#include "kube/api/node_taints.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"
#include "kube/api/pod_requests.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::set<std::string_view>;

// Null: the taint is of another owner.
const OwnTaint* own_taint_of(const Json& taint, std::span<const OwnTaint> own) {
  if (!taint.is_object()) return nullptr;
  const auto found = std::ranges::find(own, taint.value("key", ""), &OwnTaint::key);
  return found == own.end() ? nullptr : &*found;
}

Keys own_keys(const Json& taints, std::span<const OwnTaint> own) {
  Keys keys;
  for (const Json& taint : taints)
    if (const OwnTaint* ours = own_taint_of(taint, own)) keys.insert(ours->key);
  return keys;
}

// Taints of other owners unchanged and in their order, then headroom's.
Json wanted_taints(const Json& there, std::span<const OwnTaint> own) {
  const Keys had = own_keys(there, own);
  Json wanted = Json::array();
  for (const Json& taint : there)
    if (!own_taint_of(taint, own)) wanted.push_back(taint);
  for (const OwnTaint& taint : own)
    if (taint.wanted.value_or(had.contains(taint.key)))
      wanted.push_back({{"key", taint.key}, {"effect", taint.effect}});
  return wanted;
}

// Throws an exception of the JSON library if the response is not a Node.
std::optional<HttpRequest> patch_of(const std::string& node_name, const Json& node,
                                    std::span<const OwnTaint> own) {
  const std::string version = node.at("metadata").at("resourceVersion");
  const Json& spec = node.at("spec");
  const Json there = spec.contains("taints") ? spec.at("taints") : Json::array();
  Json wanted = wanted_taints(there, own);
  // The server may have added timeAdded to headroom's taints, or reordered them: only the set
  // counts.
  if (there.size() == wanted.size() && own_keys(there, own) == own_keys(wanted, own))
    return std::nullopt;
  const Json patch{{"metadata", {{"resourceVersion", version}}},
                   {"spec", {{"taints", std::move(wanted)}}}};
  return HttpRequest{.method = "PATCH",
                     .path = node_path(node_name) + "?fieldManager=" + std::string(kManager),
                     .headers = {{"Content-Type", "application/merge-patch+json"}},
                     .body = to_json_text(patch)};
}

}  // namespace

std::string node_path(const std::string& node_name) {
  return "/api/v1/nodes/" + escaped(node_name);
}

HttpRequest node_get(const std::string& node_name) {
  return {.method = "GET", .path = node_path(node_name)};
}

Result<std::optional<HttpRequest>> own_taints_patch(const std::string& node_name,
                                                    const std::string& node,
                                                    std::span<const OwnTaint> own) {
  try {
    return patch_of(node_name, Json::parse(node), own);
  } catch (const std::exception& thrown) {  // thrown by the JSON library
    return failure(std::string("read the node's taints: ") + thrown.what());
  }
}

}  // namespace headroom::kube
