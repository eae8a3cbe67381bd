// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/text_table.h"

#include "base/human_readable.h"

#include <headroom/signal.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace headroom::ctl {
namespace {

std::string_view code(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "\x1b[1m";
    case Colour::kDim:
      return "\x1b[2m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kRed:
      return "\x1b[31m";
  }
  return "";
}

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].text.size());
  }
  return widths;
}

// Appends the part of a cell that fits into the line. `used` counts visible characters, without
// colour codes.
void append(std::string& line, std::size_t& used, std::string_view text, Colour colour,
            const Screen& screen) {
  if (screen.columns != 0) text = text.substr(0, screen.columns - std::min(screen.columns, used));
  used += text.size();
  line += colourise(text, colour, screen);
}

std::string line_of(const Row& row, const std::vector<std::size_t>& widths, std::size_t left,
                    const Screen& screen) {
  std::string line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string gap(widths[i] - row[i].text.size(), ' ');
    const bool last = i + 1 == row.size();
    if (i >= left) append(line, used, gap, Colour::kNone, screen);
    append(line, used, row[i].text, row[i].colour, screen);
    if (i < left && !last) append(line, used, gap, Colour::kNone, screen);
    if (!last) append(line, used, "  ", Colour::kNone, screen);
  }
  return line;
}

}  // namespace

Screen screen_of_stdout() {
  Screen screen;
  if (!::isatty(STDOUT_FILENO)) return screen;
  const char* no_color = std::getenv("NO_COLOR");
  screen.colour = !no_color || *no_color == '\0';
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  return screen;
}

std::string table(const std::vector<Row>& rows, std::size_t left, const Screen& screen) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  for (const Row& row : rows)
    text += line_of(row, widths, left, screen) + '\n';
  return text;
}

std::string colourise(std::string_view text, Colour colour, const Screen& screen) {
  if (!screen.colour || colour == Colour::kNone || text.empty()) return std::string(text);
  return std::string(code(colour)).append(text).append("\x1b[0m");
}

std::string amount(std::string_view signal, std::optional<std::int64_t> value) {
  if (!value) return "-";
  const auto known = signal_named(signal);
  if (known) return report::human_amount(*known, *value);
  // Limits of local storage are in bytes.
  return signal.ends_with(".limit") ? report::human_bytes(*value) : std::to_string(*value);
}

std::string used(std::string_view signal, std::optional<std::int64_t> value) {
  const auto known = signal_named(signal);
  return known && wants_memory(*known) ? bytes(value) : amount(signal, value);
}

std::string bytes(std::optional<std::int64_t> value) {
  return value ? report::human_bytes(*value) : "-";
}

std::string seconds(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  constexpr double kCentury = 3.2e9;  // beyond that, a Duration overflows
  return report::human(Duration(static_cast<std::int64_t>(std::min(*value, kCentury) * 1e9)));
}

}  // namespace headroom::ctl
