// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/section.h"

#include "judge/resources/go_duration.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>
#include <vector>

namespace headroom::config {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Insertions, deletions, substitutions and swaps of neighbours; case is free, because the wrong
// capital is the likeliest slip of all (a word of another case is still unknown, at distance 0).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> closest_match(std::string_view word,
                                              std::span<const std::string_view> known) {
  const std::size_t max_distance = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string_view> best;
  std::size_t best_distance = max_distance + 1;
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

bool is_misspelling(std::string_view word, std::string_view known) {
  const std::size_t max_distance = std::clamp<std::size_t>(word.size() / 3, 1, 2);
  return distance(word, known) <= max_distance;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const auto best = closest_match(word, known);
  if (!best) return "";
  return ", did you mean " + std::string(*best) + "?";
}

std::string Section::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

int Section::line_of(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  return entry ? entry->line : line();
}

void Section::add_error_at(int line, std::string what) const {
  complaints_->push_back({*file_, line, std::move(what)});
}

void Section::add_error(std::string_view key, std::string_view what) const {
  add_error_at(line_of(key), path_of(key) + ": " + std::string(what));
}

void Section::add_error(const yaml::Entry& entry, std::string_view what) const {
  add_error_at(entry.line, path_of(entry.key) + ": " + std::string(what));
}

void Section::expected(const std::string& name, int line, std::string_view wanted,
                       const yaml::Node& found) const {
  add_error_at(line, name + ": expected " + std::string(wanted) + ", found " + describe(found));
}

void Section::reject_unknown_keys(std::span<const std::string_view> known) const {
  for (const yaml::Entry& entry : map_->entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    add_error_at(entry.line, "unknown key " + path_of(entry.key) + did_you_mean(entry.key, known));
  }
}

void Section::warn_of_unknown_keys(std::span<const std::string_view> known,
                                   std::span<const std::string_view> used,
                                   Diagnostics& warnings) const {
  for (const yaml::Entry& entry : map_->entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    std::string what = "unknown key " + path_of(entry.key) + did_you_mean(entry.key, known);
    const auto closest = closest_match(entry.key, known);
    if (closest && is_misspelling(entry.key, *closest) &&
        std::find(used.begin(), used.end(), *closest) != used.end())
      add_error_at(entry.line, std::move(what));
    else
      warnings.push_back({*file_, entry.line, std::move(what)});
  }
}

std::optional<std::string> Section::string_in(const yaml::Node& node, const std::string& name,
                                              int line) const {
  if (node.is_scalar() && !is_number(node) && !is_boolean(node)) return node.text;
  // The kubelet refuses these too; the message explains what to write instead of a bare 500.
  const bool unquoted = node.is_scalar();
  expected(name, line, unquoted ? "a string (put it in quotes)" : "a string", node);
  return std::nullopt;
}

std::optional<std::string> Section::string(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  return string_in(entry->value, path_of(key), entry->line);
}

std::string Section::required_string(std::string_view key) const {
  const auto text = string(key);
  if (!has(key) || text == "") add_error_at(line_of(key), "missing " + path_of(key));
  return text.value_or("");
}

std::optional<bool> Section::boolean(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  if (!is_boolean(entry->value)) {
    expected(path_of(key), entry->line, "true or false", entry->value);
    return std::nullopt;
  }
  // Of YAML 1.1's words for it those of truth are true, yes and on, in three cases each.
  const std::string& word = entry->value.text;
  const char first = static_cast<char>(word[0] | 0x20);
  return first == 'y' || first == 't' || word == "on" || word == "On" || word == "ON";
}

std::optional<std::int64_t> Section::integer(std::string_view key, std::int64_t least,
                                             std::int64_t most) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  const std::string& text = entry->value.text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (is_number(entry->value) && error == std::errc() && end == text.data() + text.size() &&
      value >= least && value <= most)
    return value;
  expected(path_of(key), entry->line,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
           entry->value);
  return std::nullopt;
}

std::optional<double> Section::number(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  const std::string& text = entry->value.text;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (is_number(entry->value) && error == std::errc() && end == text.data() + text.size())
    return value;
  expected(path_of(key), entry->line, "a number such as 0.9", entry->value);
  return std::nullopt;
}

std::optional<Duration> Section::duration(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  // A bare 0 is the one number that needs no unit.
  const bool readable =
      entry->value.is_scalar() && (!is_number(entry->value) || entry->value.text == "0");
  if (!readable) {
    expected(path_of(key), entry->line, "a duration such as 30s or 1m30s", entry->value);
    return std::nullopt;
  }
  const auto duration = parse_go_duration(entry->value.text);
  if (!duration) {
    add_error(key, duration.error().what);
    return std::nullopt;
  }
  return *duration;
}

std::optional<Quantity> Section::quantity(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  return entry ? quantity(*entry) : std::nullopt;
}

std::optional<Quantity> Section::quantity(const yaml::Entry& entry) const {
  if (entry.value.is_null()) return std::nullopt;
  if (!entry.value.is_scalar() || is_boolean(entry.value)) {
    expected(path_of(entry.key), entry.line, "a quantity such as 512Mi or 500m", entry.value);
    return std::nullopt;
  }
  const auto quantity = Quantity::parse(entry.value.text);
  if (!quantity) {
    add_error(entry, "\"" + entry.value.text + "\": " + quantity.error().what);
    return std::nullopt;
  }
  return *quantity;
}

std::optional<std::vector<LocatedText>> Section::list_of_strings(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  if (!entry->value.is_sequence()) {
    expected(path_of(key), entry->line, "a list of strings", entry->value);
    return std::nullopt;
  }
  std::vector<LocatedText> strings;
  for (std::size_t i = 0; i < entry->value.items.size(); ++i) {
    const yaml::Node& item = entry->value.items[i];
    if (auto text = string_in(item, path_of(key) + "[" + std::to_string(i) + "]", item.line))
      strings.push_back({"", std::move(*text), item.line});
  }
  return strings;
}

std::optional<std::vector<LocatedText>> Section::map_of_strings(std::string_view key) const {
  const auto section = map(key);
  if (!section) return std::nullopt;
  std::vector<LocatedText> strings;
  for (const yaml::Entry& entry : section->entries())
    if (auto text = section->string_in(entry.value, section->path_of(entry.key), entry.line))
      strings.push_back({entry.key, std::move(*text), entry.line});
  return strings;
}

std::optional<Section> Section::map(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  if (entry->value.is_map()) return Section(entry->value, path_of(key), *file_, *complaints_);
  expected(path_of(key), entry->line, "a map", entry->value);
  return std::nullopt;
}

std::optional<std::vector<Section>> Section::list_of_maps(std::string_view key) const {
  const yaml::Entry* entry = yaml::find(*map_, key);
  if (!entry) return std::nullopt;
  if (!entry->value.is_sequence()) {
    expected(path_of(key), entry->line, "a list", entry->value);
    return std::nullopt;
  }
  std::vector<Section> sections;
  for (std::size_t i = 0; i < entry->value.items.size(); ++i) {
    const yaml::Node& item = entry->value.items[i];
    std::string path = path_of(key) + "[" + std::to_string(i) + "]";
    if (item.is_map())
      sections.emplace_back(item, std::move(path), *file_, *complaints_);
    else
      expected(path, item.line, "a map", item);
  }
  return sections;
}

}  // namespace headroom::config
