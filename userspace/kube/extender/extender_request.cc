// SPDX-License-Identifier: Apache-2.0
#include "kube/extender/extender_request.h"

#include "base/json_text.h"
#include "kube/extender/node_score.h"
#include "kube/extender/node_table.h"

#include <algorithm>
#include <utility>

namespace headroom::kube {
namespace {

// The parser keeps something for each level, so it is counted before it is parsed.
bool is_too_deep(const std::string& body) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else
        quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxExtenderDepth) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

const nlohmann::json* part(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> node_name(const nlohmann::json& name) {
  if (!name.is_string()) return failure("a node's name is not a string");
  auto text = name.get<std::string>();
  if (text.empty() || text.size() > kMaxNodeName) return failure("a node's name is too long");
  return text;
}

// The name of a Node.
Result<std::string> name_of(const nlohmann::json& node) {
  const nlohmann::json* metadata = part(node, "metadata");
  const nlohmann::json* name = metadata ? part(*metadata, "name") : nullptr;
  if (!name) return failure("a node has no name");
  return node_name(*name);
}

Result<> add_names(const nlohmann::json& list, bool of_nodes, ExtenderArgs& args) {
  if (!list.is_array()) return failure("the nodes are not a list");
  if (list.size() > kMaxExtenderNodes) return failure("there are too many nodes");
  for (const nlohmann::json& each : list) {
    auto name = of_nodes ? name_of(each) : node_name(each);
    if (!name) return tl::make_unexpected(name.error());
    args.names.push_back(std::move(*name));
  }
  return {};
}

// A node that the scheduler sent says itself what there is to know.
void find_summary_of(const ExtenderArgs& args, std::size_t i, const FindSummary& find,
                     const UseSummary& use) {
  if (!args.has_nodes) return find(args.names[i], use);
  const auto summary = summary_of_node(args.nodes[i]).second;
  use(summary ? &*summary : nullptr);
}

}  // namespace

Result<ExtenderArgs> extender_args_of(const std::string& body) {
  if (body.size() > kMaxExtenderBody) return failure("the request is too long");
  if (is_too_deep(body)) return failure("the request is nested too deeply");
  nlohmann::json json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return failure("the request is not a JSON object");
  ExtenderArgs args;
  const nlohmann::json* names = part(json, "NodeNames");
  if (names) {
    if (const auto done = add_names(*names, false, args); !done)
      return tl::make_unexpected(done.error());
    return args;
  }
  const nlohmann::json* list = part(json, "Nodes");
  const nlohmann::json* items = list ? part(*list, "items") : nullptr;
  if (!items) return failure("the request has neither NodeNames nor Nodes");
  if (const auto done = add_names(*items, true, args); !done)
    return tl::make_unexpected(done.error());
  args.has_nodes = true;
  for (nlohmann::json& node : json["Nodes"]["items"])
    args.nodes.push_back(std::move(node));
  return args;
}

std::string filter_answer(const ExtenderArgs& args, const FindSummary& find, WallTime now) {
  nlohmann::json failed = nlohmann::json::object(), kept = nlohmann::json::array();
  for (std::size_t i = 0; i < args.names.size(); ++i)
    find_summary_of(args, i, find, [&](const NodeSummary* summary) {
      if (const auto refusal = refusal_of(summary, now))
        failed[args.names[i]] = *refusal;
      else
        kept.push_back(args.has_nodes ? args.nodes[i] : nlohmann::json(args.names[i]));
    });
  nlohmann::json answer{{"FailedNodes", std::move(failed)}};
  if (args.has_nodes)
    answer["Nodes"] = {{"metadata", nlohmann::json::object()}, {"items", std::move(kept)}};
  else
    answer["NodeNames"] = std::move(kept);
  return to_json_text(answer);
}

std::string prioritize_answer(const ExtenderArgs& args, const FindSummary& find, WallTime now) {
  nlohmann::json scores = nlohmann::json::array();
  for (std::size_t i = 0; i < args.names.size(); ++i)
    find_summary_of(args, i, find, [&](const NodeSummary* summary) {
      scores.push_back({{"Host", args.names[i]}, {"Score", score_of(summary, now)}});
    });
  return to_json_text(scores);
}

}  // namespace headroom::kube
