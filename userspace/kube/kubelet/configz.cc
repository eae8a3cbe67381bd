// SPDX-License-Identifier: Apache-2.0
#include "kube/kubelet/configz.h"

#include "config/keys.h"

#include <nlohmann/json.hpp>

namespace headroom::kube {

using Json = nlohmann::ordered_json;

Result<std::string> configuration_from(std::string_view configz) {
  const Json answer = Json::parse(configz, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("kubeletconfig") ||
      !answer["kubeletconfig"].is_object())
    return failure("expected {\"kubeletconfig\": {...}}, found something else");
  const Json& kubelet_config = answer["kubeletconfig"];
  Json kept{{"apiVersion", "kubelet.config.k8s.io/v1beta1"}, {"kind", "KubeletConfiguration"}};
  for (const config::KeyDescription& key : config::all_keys()) {
    const std::string name(key.path);
    if (name != "registerWithTaints" && kubelet_config.contains(name) &&
        !kubelet_config[name].is_null())
      kept[name] = kubelet_config[name];
  }
  return kept.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::kube
