// SPDX-License-Identifier: Apache-2.0
// The known word that a mistyped one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::config {

// Absent when nothing is near enough to be worth saying.
std::optional<std::string_view> closest_match(std::string_view word,
                                              std::span<const std::string_view> known);

// Whether `word` is `known` with at most two letters wrong, or with other capitals.
bool is_misspelling(std::string_view word, std::string_view known);

// ", did you mean evictionHard?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace headroom::config
