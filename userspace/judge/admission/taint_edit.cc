// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/taint_edit.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr std::string_view kExpected =
    ": expected KEY=VALUE:EFFECT or KEY:EFFECT to add, KEY:EFFECT- or KEY- to remove, where EFFECT "
    "is NoSchedule, PreferNoSchedule or NoExecute";

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Letters, digits, '-', '_' and '.', the first and the last of them a letter or a digit.
bool is_name(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  return !text.empty() && text.size() <= kMaxLength && alphanumeric(text.front()) &&
         alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool is_domain(std::string_view text) {
  constexpr std::size_t kMaxLength = 253;
  return !text.empty() && text.size() <= kMaxLength && alphanumeric(text.front()) &&
         alphanumeric(text.back()) && text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (alphanumeric(c) && (c < 'A' || c > 'Z')) || c == '-' || c == '.';
         });
}

bool same_key_and_effect(const Taint& a, const Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

void put(std::vector<Taint>& taints, const Taint& taint) {
  const auto there = std::find_if(taints.begin(), taints.end(), [&](const Taint& old) {
    return same_key_and_effect(old, taint);
  });
  if (there == taints.end())
    taints.push_back(taint);
  else
    *there = taint;
}

std::string remove(std::vector<Taint>& taints, const TaintEdit& edit) {
  const auto removed = std::erase_if(taints, [&](const Taint& taint) {
    return taint.key == edit.key && (!edit.effect || taint.effect == *edit.effect);
  });
  if (removed > 0) return "";
  std::string what = edit.key;
  if (edit.effect) what.append(":").append(name(*edit.effect));
  return "taint \"" + what + "\" not found";
}

std::string add(std::vector<Taint>& taints, const TaintEdit& edit, bool overwrite) {
  const Taint taint{edit.key, edit.value, *edit.effect};
  for (const Taint& old : taints)
    if (same_key_and_effect(old, taint) && old != taint && !overwrite)
      return "the node already has " + to_string(old) + "; --overwrite replaces it";
  put(taints, taint);
  return "";
}

}  // namespace

Result<TaintEdit> parse_taint_edit(std::string_view text) {
  const auto syntax_error = [&] {
    return failure("\"" + std::string(text) + "\"" + std::string(kExpected));
  };
  std::string_view rest = text;
  TaintEdit edit;
  edit.removes = rest.ends_with('-');
  if (edit.removes) rest.remove_suffix(1);
  if (const auto colon = rest.rfind(':'); colon != std::string_view::npos) {
    edit.effect = taint_effect_named(rest.substr(colon + 1));
    if (!edit.effect) return syntax_error();
    rest = rest.substr(0, colon);
  } else if (!edit.removes) {
    return syntax_error();
  }
  const std::size_t equals = rest.find('=');
  edit.key = rest.substr(0, equals);
  if (equals != std::string_view::npos) edit.value = rest.substr(equals + 1);
  const std::string error_text = taint_error({edit.key, edit.value, TaintEffect::kNoSchedule});
  if (!error_text.empty()) return failure("\"" + std::string(text) + "\": " + error_text);
  return edit;
}

std::string taint_error(const Taint& taint) {
  const std::size_t slash = taint.key.find('/');
  const bool prefixed = slash != std::string::npos;
  const std::string_view key = taint.key;
  const std::string_view name = prefixed ? key.substr(slash + 1) : key;
  if ((prefixed && !is_domain(key.substr(0, slash))) || !is_name(name))
    return "the key \"" + taint.key +
           "\" must be a name such as dedicated or example.com/dedicated: up to 63 letters, "
           "digits, '-', '_' and '.', which begin and end with a letter or digit";
  if (!taint.value.empty() && !is_name(taint.value))
    return "the value \"" + taint.value +
           "\" must be up to 63 letters, digits, '-', '_' and '.', which begin and end with a "
           "letter or digit";
  return "";
}

TaintsOrErrors apply_taint_edits(std::vector<Taint> taints, std::span<const TaintEdit> edits,
                                 bool overwrite) {
  std::vector<std::string> errors;
  for (const TaintEdit& edit : edits) {
    std::string error = edit.removes ? remove(taints, edit) : add(taints, edit, overwrite);
    if (!error.empty()) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return taints;
}

std::vector<Taint> reconcile_taints(std::vector<Taint> taints, std::span<const Taint> before,
                                    std::span<const Taint> now) {
  const auto has = [](std::span<const Taint> all, const Taint& taint) {
    return std::find(all.begin(), all.end(), taint) != all.end();
  };
  std::erase_if(taints, [&](const Taint& taint) { return has(before, taint) && !has(now, taint); });
  for (const Taint& taint : now)
    if (!has(before, taint)) put(taints, taint);
  return taints;
}

}  // namespace headroom
