// SPDX-License-Identifier: Apache-2.0
// Text tables, colours and amounts for a terminal. Pure: only strings are made.
#pragma once

#include "base/human_readable.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

enum class Colour : std::uint8_t { kNone, kBold, kDim, kGreen, kYellow, kRed };

struct Cell {
  std::string text;
  Colour colour = Colour::kNone;
};
using Row = std::vector<Cell>;

struct Screen {
  std::size_t columns = 0;  // 0: unlimited
  std::size_t rows = 0;     // 0: unlimited
  bool colour = false;
};

// The screen of stdout: on a terminal its size, and colours unless NO_COLOR is set.
Screen screen_of_stdout();

// The columns of a terminal that the text takes, and the part of it that takes no more than this.
// Wide characters take two, if the locale knows them.
std::size_t display_width(std::string_view text);
std::string_view fitting(std::string_view text, std::size_t columns);

// The lines of a table, each as pieces of one colour; `columns`: 0 for unlimited. See table().
std::vector<Row> aligned(const std::vector<Row>& rows, std::size_t left, std::size_t columns);

// Columns are as wide as their widest cell. The first `left` columns are aligned left, the others
// right. Lines are cut at the screen's width.
std::string table(const std::vector<Row>& rows, std::size_t left, const Screen& screen);

std::string colourise(std::string_view text, Colour colour, const Screen& screen);

// These return "-" if the value is absent.
std::string amount(std::string_view signal, std::optional<std::int64_t> value);
std::string bytes(std::optional<std::int64_t> value);
// A pod's usage or request of the resource by which the signal ranks pods.
std::string used(std::string_view signal, std::optional<std::int64_t> value);
std::string seconds(std::optional<double> value);

}  // namespace headroom::ctl
