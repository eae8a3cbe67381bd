// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/active_settings.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {

using Json = nlohmann::ordered_json;

void ActiveSettings::set(config::ConfigSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::string ActiveSettings::json() const {
  config::ConfigSettings settings;
  {
    const std::lock_guard lock(mutex_);
    settings = settings_;
  }
  Json list = Json::array();
  for (const config::ConfigSetting& each : settings) {
    Json setting{{"path", each.path}};
    if (!each.entry.empty()) setting["entry"] = each.entry;
    setting["value"] = Json::parse(each.value, nullptr, false);
    setting["origin"] = each.origin;
    if (!each.next.empty()) {
      setting["next"] = Json::parse(each.next, nullptr, false);
      setting["nextOrigin"] = each.next_origin;
    }
    list.push_back(std::move(setting));
  }
  return Json{{"version", HEADROOM_VERSION}, {"settings", std::move(list)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom::daemon
