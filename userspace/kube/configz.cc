// SPDX-License-Identifier: Apache-2.0
#include "kube/configz.h"

#include "config/described.h"

#include <nlohmann/json.hpp>

namespace headroom::kube {

using Json = nlohmann::ordered_json;

Result<std::string> configuration_from(std::string_view configz) {
  const Json answer = Json::parse(configz, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("kubeletconfig") ||
      !answer["kubeletconfig"].is_object())
    return failure("expected {\"kubeletconfig\": {...}}, found something else");
  const Json& told = answer["kubeletconfig"];
  Json kept{{"apiVersion", "kubelet.config.k8s.io/v1beta1"}, {"kind", "KubeletConfiguration"}};
  for (const config::DescribedKey& key : config::described_keys()) {
    const std::string name(key.path);
    if (name != "registerWithTaints" && told.contains(name) && !told[name].is_null())
      kept[name] = told[name];
  }
  return kept.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::kube
