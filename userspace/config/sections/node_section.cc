// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "judge/admission/taint_edit.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace headroom::config {
namespace {

using Int32 = std::numeric_limits<std::int32_t>;

constexpr std::array<Choice<TaintEffect>, 3> kEffects{
    {{"NoSchedule", TaintEffect::kNoSchedule},
     {"PreferNoSchedule", TaintEffect::kPreferNoSchedule},
     {"NoExecute", TaintEffect::kNoExecute}}};

void require_value(const Section& section, std::string_view key) {
  if (!section.has(key)) section.add_error_at(section.line(), "missing " + section.path_of(key));
}

bool same_key_and_effect(const Taint& a, const Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

void read_taint(const Section& section, std::vector<Taint>& taints, Diagnostics& warnings) {
  static constexpr std::array<std::string_view, 4> kKnown{"key", "value", "effect", "timeAdded"};
  section.warn_of_unknown_keys(kKnown, kKnown, warnings);
  require_value(section, "key");
  require_value(section, "effect");
  const auto key = section.string("key");
  const auto effect = section.choice<TaintEffect>("effect", kEffects);
  const auto value = section.string("value");
  if (!key || !effect || (section.has("value") && !value)) return;
  const Taint taint{*key, value.value_or(""), *effect};
  if (const std::string what = taint_error(taint); !what.empty())
    return section.add_error_at(section.line(), section.path_of("key") + ": " + what);
  const auto duplicate = std::find_if(taints.begin(), taints.end(), [&](const Taint& other) {
    return same_key_and_effect(other, taint);
  });
  if (duplicate != taints.end())
    return section.add_error("key", "there is " + to_string(*duplicate) + " already");
  taints.push_back(taint);
}

void read_taints(const Section& document, Config& config, Diagnostics& warnings) {
  const auto sections = document.list_of_maps("registerWithTaints");
  if (!sections) return;
  for (const Section& section : *sections)
    read_taint(section, config.taints, warnings);
}

}  // namespace

void read_node(const Section& document, Config& config, Diagnostics& warnings) {
  read_taints(document, config, warnings);
  if (const auto pods = document.integer("maxPods", 0, Int32::max())) config.max_pods = *pods;
  if (const auto pods = document.integer("podsPerCore", 0, Int32::max()))
    config.pods_per_core = *pods;
}

void read_node_identity(const Section& headroom, Config& config) {
  if (const auto name = headroom.string("nodeName")) config.node_name = *name;
  if (auto strings = headroom.map_of_strings("nodeLabels")) {
    config.node_labels.clear();
    for (LocatedText& word : *strings) {
      // Labels and taints are spelled by the same rules.
      const std::string what = taint_error({word.key, word.text, TaintEffect::kNoSchedule});
      if (!what.empty())
        headroom.add_error_at(word.line, headroom.path_of("nodeLabels") + ": " + what);
      config.node_labels.emplace(std::move(word.key), std::move(word.text));
    }
  }
  const auto file = headroom.string("nodeStatus");
  if (!file) return;
  if (file->empty() || file->starts_with("/"))
    config.node_status = *file;
  else
    headroom.add_error(
        "nodeStatus", "expected an absolute path, or nothing for no file, found \"" + *file + "\"");
}

}  // namespace headroom::config
