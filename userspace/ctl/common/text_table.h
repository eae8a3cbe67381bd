// SPDX-License-Identifier: Apache-2.0
// Columns, colours and amounts for a terminal. Pure strings.
#pragma once

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
  std::size_t columns = 0;  // 0: as wide as need be
  std::size_t rows = 0;     // 0: as many as need be
  bool colour = false;
};

// stdout's: its size and, on a tty without NO_COLOR, colours.
Screen screen_of_stdout();

// Column widths from the rows themselves; the first `left` columns lean left, the others right.
// Lines are cut at the screen's width.
std::string table(const std::vector<Row>& rows, std::size_t left, const Screen& screen);

std::string colourise(std::string_view text, Colour colour, const Screen& screen);

// Without control characters: a pod's name must not drive the terminal.
std::string printable(std::string_view text);

// "-" where not known.
std::string amount(std::string_view signal, std::optional<std::int64_t> value);
std::string bytes(std::optional<std::int64_t> value);
// What a pod uses or requests of what it is ranked by.
std::string used(std::string_view signal, std::optional<std::int64_t> value);
std::string seconds(std::optional<double> value);

}  // namespace headroom::ctl
