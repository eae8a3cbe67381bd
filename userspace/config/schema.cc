// SPDX-License-Identifier: Apache-2.0
#include "config/schema.h"

#include "base/json_text.h"
#include "config/keys.h"
#include "config/kubelet_keys.h"

#include <sstream>

#include <nlohmann/json.hpp>

namespace headroom::config {
namespace {

using Json = nlohmann::ordered_json;

Json object(Json properties) {
  return {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

Json one_of(std::string_view enum_values) {
  Json list = Json::array();
  std::istringstream in{std::string(enum_values)};
  for (std::string word; in >> word;)
    list.push_back(word);
  return {{"enum", std::move(list)}};
}

// A key that is there and says null is absent.
Json or_null(const char* type) {
  return {{"type", Json::array({type, "null"})}};
}

Json taints() {
  Json taint = object({{"key", {{"type", "string"}}},
                       {"value", {{"type", "string"}}},
                       {"effect", one_of("NoSchedule PreferNoSchedule NoExecute")},
                       {"timeAdded", {{"type", "string"}}}});
  taint["required"] = {"key", "effect"};
  return {{"type", Json::array({"array", "null"})}, {"items", std::move(taint)}};
}

Json reserved_memory() {
  Json reservation =
      object({{"numaNode", {{"type", "integer"}, {"minimum", 0}}},
              {"limits",
               {{"type", "object"}, {"additionalProperties", {{"type", {"string", "number"}}}}}}});
  reservation["required"] = {"numaNode", "limits"};
  return {{"type", Json::array({"array", "null"})}, {"items", std::move(reservation)}};
}

Json type_of(const KeyDescription& key) {
  switch (key.type) {
    case ConfigKeyType::kString:
      return or_null("string");
    case ConfigKeyType::kEnum:
      return one_of(key.enum_values);
    case ConfigKeyType::kBoolean:
      return or_null("boolean");
    case ConfigKeyType::kInteger:
      return or_null("integer");
    case ConfigKeyType::kNumber:
      return or_null("number");
    case ConfigKeyType::kDuration:
      return {{"type", Json::array({"string", "null"})},
              {"pattern", "^([-+]?([0-9.]+(ns|us|µs|ms|s|m|h))+|0)$"}};
    case ConfigKeyType::kQuantity:
      return {{"type", Json::array({"string", "number", "null"})}};
    case ConfigKeyType::kStrings:
      return {{"type", Json::array({"array", "null"})}, {"items", {{"type", "string"}}}};
    case ConfigKeyType::kStringMap:
      return {{"type", Json::array({"object", "null"})},
              {"additionalProperties", {{"type", "string"}}}};
    case ConfigKeyType::kBoolMap:
      return {{"type", Json::array({"object", "null"})},
              {"additionalProperties", {{"type", "boolean"}}}};
    case ConfigKeyType::kTaints:
      return taints();
    case ConfigKeyType::kReservedMemory:
      return reserved_memory();
  }
  return {};
}

Json key_schema(const KeyDescription& key) {
  Json json{{"description", key.what}};
  json.update(type_of(key));
  if (Json value = Json::parse(key.value); !value.is_null()) json["default"] = std::move(value);
  return json;
}

// "headroom.disk.nodefs" → properties of properties.
void insert_at_path(Json& properties, std::string_view path, Json what) {
  const std::size_t dot = path.find('.');
  const std::string head(path.substr(0, dot));
  if (dot == std::string_view::npos) {
    properties[head] = std::move(what);
    return;
  }
  if (!properties.contains(head)) properties[head] = object(Json::object());
  insert_at_path(properties[head]["properties"], path.substr(dot + 1), std::move(what));
}

}  // namespace

std::string json_schema() {
  Json properties{{"apiVersion", one_of("kubelet.config.k8s.io/v1beta1")},
                  {"kind", one_of("KubeletConfiguration")}};
  for (const KeyDescription& key : all_keys())
    insert_at_path(properties, key.path, key_schema(key));
  for (const std::string_view key : kubelet_keys())
    if (!properties.contains(key))
      properties[std::string(key)] = {{"description", "The kubelet's; headroom lets it be"}};
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "headroom.yaml"},
              {"description", "A KubeletConfiguration with a headroom section: headroom.yaml(5)"}};
  schema.update(object(std::move(properties)));
  schema["required"] = {"apiVersion", "kind"};
  return to_json_text(schema, 1) + "\n";
}

}  // namespace headroom::config
