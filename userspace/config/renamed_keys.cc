// SPDX-License-Identifier: Apache-2.0
#include "config/renamed_keys.h"

#include <algorithm>
#include <array>

namespace headroom::config {
namespace {

constexpr std::array kRenamed{
    RenamedKey{"headroom.disk", "measureEvery", "measurePeriod"},
    RenamedKey{"headroom.ladder.squeeze", "longest", "maxDuration"},
    RenamedKey{"headroom.ladder.stuck", "after", "waitDuration"},
    RenamedKey{"headroom.ladder.stuck", "relaxFor", "relaxDuration"},
    RenamedKey{"headroom.reclaim", "memory", "memoryLimit"},
};

yaml::Entry* entry_of(yaml::Node& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const yaml::Entry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

// The map at a path of keys; null: the document has none.
yaml::Node* map_at(yaml::Node& document, std::string_view path) {
  yaml::Node* node = &document;
  while (node && !path.empty()) {
    const std::size_t dot = path.find('.');
    yaml::Entry* entry = entry_of(*node, path.substr(0, dot));
    node = entry ? &entry->value : nullptr;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node && node->is_map() ? node : nullptr;
}

}  // namespace

std::span<const RenamedKey> renamed_keys() {
  return kRenamed;
}

void rename_old_keys(yaml::Node& document, const std::string& file, Diagnostics& diagnostics,
                     std::vector<std::string>& warnings) {
  for (const RenamedKey& key : kRenamed) {
    yaml::Node* map = map_at(document, key.map);
    yaml::Entry* old = map ? entry_of(*map, key.old_name) : nullptr;
    if (!old) continue;
    const std::string path = std::string(key.map) + '.',
                      old_path = path + std::string(key.old_name),
                      new_path = path + std::string(key.new_name);
    if (entry_of(*map, key.new_name)) {
      diagnostics.push_back({file, old->line,
                             old_path + ": is the old name of " + new_path +
                                 ", which is set too; remove the old one"});
      std::erase_if(map->entries,
                    [&](const yaml::Entry& entry) { return entry.key == key.old_name; });
      continue;
    }
    warnings.push_back(file + ":" + std::to_string(old->line) + ": " + old_path +
                       " was renamed; write " + new_path);
    old->key = key.new_name;
  }
}

}  // namespace headroom::config
