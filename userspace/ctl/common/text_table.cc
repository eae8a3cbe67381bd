// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/text_table.h"

#include "base/human_readable.h"

#include <headroom/signal.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cwchar>

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
      widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  return widths;
}

// The bytes of the character at the start of valid UTF-8; 1 for anything else.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return std::min(length, text.size());
}

wchar_t code_point(std::string_view character) {
  constexpr std::array<unsigned, 5> kFirstBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  unsigned value = static_cast<unsigned char>(character[0]) & kFirstBits[character.size()];
  for (const char byte : character.substr(1))
    value = value << 6 | (static_cast<unsigned char>(byte) & 0x3f);
  return static_cast<wchar_t>(value);
}

// 2 for wide characters such as Chinese, 0 for combining ones, if the locale knows the character.
std::size_t character_width(std::string_view character) {
  if (character.size() == 1) return 1;
  const int width = ::wcwidth(code_point(character));
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// Appends the part of a cell that fits into the line.
void append(Row& line, std::size_t& used, std::string_view text, Colour colour, std::size_t most) {
  if (most != 0) text = fitting(text, most - std::min(most, used));
  if (text.empty()) return;
  used += display_width(text);
  if (!line.empty() && line.back().colour == colour)
    line.back().text += text;
  else
    line.push_back({std::string(text), colour});
}

Row line_of(const Row& row, const std::vector<std::size_t>& widths, std::size_t left,
            std::size_t columns) {
  Row line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string gap(widths[i] - display_width(row[i].text), ' ');
    const bool last = i + 1 == row.size();
    if (i >= left) append(line, used, gap, Colour::kNone, columns);
    append(line, used, row[i].text, row[i].colour, columns);
    if (i < left && !last) append(line, used, gap, Colour::kNone, columns);
    if (!last) append(line, used, "  ", Colour::kNone, columns);
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

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    width += character_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width;
}

std::string_view fitting(std::string_view text, std::size_t columns) {
  std::size_t end = 0, width = 0;
  while (end < text.size()) {
    const std::size_t length = character_length(text.substr(end));
    width += character_width(text.substr(end, length));
    if (width > columns) break;
    end += length;
  }
  return text.substr(0, end);
}

std::vector<Row> aligned(const std::vector<Row>& rows, std::size_t left, std::size_t columns) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::vector<Row> lines;
  lines.reserve(rows.size());
  for (const Row& row : rows)
    lines.push_back(line_of(row, widths, left, columns));
  return lines;
}

std::string table(const std::vector<Row>& rows, std::size_t left, const Screen& screen) {
  std::string text;
  for (const Row& line : aligned(rows, left, screen.columns)) {
    for (const Cell& cell : line)
      text += colourise(cell.text, cell.colour, screen);
    text += '\n';
  }
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
  if (known == Signal::kCpuPressure) return value ? report::human_cpus(*value) : "-";
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
