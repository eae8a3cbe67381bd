// SPDX-License-Identifier: Apache-2.0
#include "config/setting.h"

#include "config/keys.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace headroom::config {
namespace {

constexpr std::size_t kOriginColumn = 48;

std::string key_line(std::size_t depth, std::string_view key, std::string_view value) {
  std::string line(depth * 2, ' ');
  line += key;
  line += ':';
  if (!value.empty()) line.append(" ").append(value);
  return line;
}

std::string with_origin(std::string line, const ConfigSetting& setting) {
  line.resize(std::max(line.size() + 2, kOriginColumn), ' ');
  line += "# " + setting.origin;
  if (!setting.next.empty())
    line += "; from the next start " + setting.next + ", " + setting.next_origin;
  return line + '\n';
}

// Opens the maps on the way to a key that are not open yet; the key's own name.
std::string_view open_parent_maps(std::string_view path, std::set<std::string, std::less<>>& open,
                                  std::size_t& depth, std::string& text) {
  std::size_t dot = path.find('.'), from = 0;
  for (; dot != std::string_view::npos; from = dot + 1, dot = path.find('.', from), ++depth)
    if (open.emplace(path.substr(0, dot)).second)
      text += key_line(depth, path.substr(from, dot - from), "") + '\n';
  return path.substr(from);
}

// JSON is YAML; what is unset is explained in a comment.
std::string value_line(std::size_t depth, std::string_view key, const ConfigSetting& setting) {
  if (setting.value == "null") return with_origin("#" + key_line(depth, key, ""), setting);
  return with_origin(key_line(depth, key, setting.value), setting);
}

using Key = std::pair<std::string_view, std::string_view>;
Key key_of(const ConfigSetting& setting) {
  return {setting.path, setting.entry};
}

}  // namespace

std::string as_yaml(const ConfigSettings& settings) {
  std::string text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  std::set<std::string, std::less<>> open;
  for (const ConfigSetting& setting : settings) {
    std::size_t depth = 0;
    const std::string_view name = open_parent_maps(setting.path, open, depth, text);
    if (setting.entry.empty()) {
      text += value_line(depth, name, setting);
      continue;
    }
    if (open.insert(setting.path).second) text += key_line(depth, name, "") + '\n';
    text += value_line(depth + 1, setting.entry, setting);
  }
  return text;
}

ConfigSettings keep_restart_settings(ConfigSettings loaded, const ConfigSettings& running) {
  for (ConfigSetting& setting : loaded) {
    const KeyDescription* key = find_config_key(setting.path);
    if (!key || !key->restart) continue;
    const auto was = std::find_if(running.begin(), running.end(), [&](const ConfigSetting& other) {
      return key_of(other) == key_of(setting);
    });
    if (was == running.end()) continue;
    ConfigSetting kept = *was;
    kept.next.clear();
    kept.next_origin.clear();
    if (setting.value != kept.value) {
      kept.next = setting.value;
      kept.next_origin = setting.origin;
    }
    setting = std::move(kept);
  }
  return loaded;
}

}  // namespace headroom::config
