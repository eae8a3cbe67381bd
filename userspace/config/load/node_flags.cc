// SPDX-License-Identifier: Apache-2.0
#include "config/load/node_flags.h"

#include "config/flags/flag_values.h"
#include "judge/admission/taint_edit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

const std::string kTaints = "--register-with-taints";
const std::string kLabels = "--node-labels";

void apply_taint_flag(const std::string& text, std::vector<Taint>& taints,
                      Diagnostics& diagnostics) {
  const auto add_error = [&](std::string what) {
    diagnostics.push_back({kTaints, 0, std::move(what)});
  };
  const auto edit = parse_taint_edit(text);
  if (!edit) return add_error(edit.error().what);
  if (edit->removes) return add_error("\"" + text + "\": there is nothing to remove yet");
  const Taint taint{edit->key, edit->value, *edit->effect};
  const auto duplicate = std::find_if(taints.begin(), taints.end(), [&](const Taint& other) {
    return other.key == taint.key && other.effect == taint.effect;
  });
  if (duplicate != taints.end())
    return add_error("\"" + text + "\": there is " + to_string(*duplicate) + " already");
  taints.push_back(taint);
}

// Given again, the last stands alone.
void apply_taint_flags(const CommandLine& line, std::vector<Taint>& taints,
                       Diagnostics& diagnostics) {
  if (line.register_with_taints.empty()) return;
  std::optional<LocatedValue> configured;
  apply_list_flag({line.register_with_taints.back()}, kTaints, configured);
  taints.clear();
  for (const LocatedText& word : configured->strings)
    apply_taint_flag(word.text, taints, diagnostics);
}

void apply_labels(const CommandLine& line, Labels& labels, Diagnostics& diagnostics) {
  std::optional<LocatedValue> configured;
  apply_map_flag(line.node_labels, kLabels, "key=value", configured, diagnostics);
  if (!configured) return;
  labels.clear();
  for (const LocatedText& word : configured->strings) {
    // Labels and taints are spelled by the same rules.
    const std::string what = taint_error({word.key, word.text, TaintEffect::kNoSchedule});
    if (!what.empty()) diagnostics.push_back({kLabels, 0, what});
    labels[word.key] = word.text;
  }
}

}  // namespace

void apply_node_flags(const CommandLine& line, Config& config, Diagnostics& diagnostics) {
  apply_taint_flags(line, config.taints, diagnostics);
  apply_labels(line, config.node_labels, diagnostics);
  if (!line.hostname_override.empty()) config.node_name = line.hostname_override.back();
  if (const auto limit = parse_count_flag(line.max_pods, "--max-pods", diagnostics))
    config.max_pods = *limit;
  if (const auto limit = parse_count_flag(line.pods_per_core, "--pods-per-core", diagnostics))
    config.pods_per_core = *limit;
}

}  // namespace headroom::config
