// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/suggest.h"

#include <algorithm>
#include <cctype>
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

}  // namespace headroom::config
