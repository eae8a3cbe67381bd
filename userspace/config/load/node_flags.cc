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

void apply_taint(const std::string& text, std::vector<Taint>& taints, Complaints& complaints) {
  const auto complain = [&](std::string what) {
    complaints.push_back({kTaints, 0, std::move(what)});
  };
  const auto edit = parse_taint_edit(text);
  if (!edit) return complain(edit.error().what);
  if (edit->removes) return complain("\"" + text + "\": there is nothing to remove yet");
  const Taint taint{edit->key, edit->value, *edit->effect};
  const auto twin = std::find_if(taints.begin(), taints.end(), [&](const Taint& other) {
    return other.key == taint.key && other.effect == taint.effect;
  });
  if (twin != taints.end())
    return complain("\"" + text + "\": there is " + to_string(*twin) + " already");
  taints.push_back(taint);
}

// Given again, the last stands alone.
void apply_taints(const CommandLine& line, std::vector<Taint>& taints, Complaints& complaints) {
  if (line.register_with_taints.empty()) return;
  std::optional<LocatedValue> told;
  apply_list_flag({line.register_with_taints.back()}, kTaints, told);
  taints.clear();
  for (const LocatedText& word : told->words)
    apply_taint(word.text, taints, complaints);
}

void apply_labels(const CommandLine& line, Labels& labels, Complaints& complaints) {
  std::optional<LocatedValue> told;
  apply_map_flag(line.node_labels, kLabels, "key=value", told, complaints);
  if (!told) return;
  labels.clear();
  for (const LocatedText& word : told->words) {
    // Labels and taints are spelled by the same rules.
    const std::string what = taint_error({word.key, word.text, TaintEffect::kNoSchedule});
    if (!what.empty()) complaints.push_back({kLabels, 0, what});
    labels[word.key] = word.text;
  }
}

}  // namespace

void apply_node_flags(const CommandLine& line, Config& config, Complaints& complaints) {
  apply_taints(line, config.taints, complaints);
  apply_labels(line, config.node_labels, complaints);
  if (!line.hostname_override.empty()) config.node_name = line.hostname_override.back();
  if (const auto most = parse_count_flag(line.max_pods, "--max-pods", complaints))
    config.max_pods = *most;
  if (const auto most = parse_count_flag(line.pods_per_core, "--pods-per-core", complaints))
    config.pods_per_core = *most;
}

}  // namespace headroom::config
