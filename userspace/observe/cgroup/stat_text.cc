// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/stat_text.h"

#include <headroom/bpf/abi.h>

#include <algorithm>
#include <string>

namespace headroom::observe {
namespace {

// The digits at the front of text, which must be followed by nothing.
std::optional<std::uint64_t> digits(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : text) {
    const auto digit = static_cast<unsigned>(c - '0');
    if (digit > 9) return std::nullopt;
    if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  return value;
}

std::string_view without_newline(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text;
}

// Takes a finished line off the front of rest; false when there is none.
bool take_line(std::string_view& rest, std::string_view& line) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return false;
  line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

}  // namespace

std::optional<std::uint64_t> count_in(std::string_view text) {
  return digits(without_newline(text));
}

std::optional<std::uint64_t> limit_in(std::string_view text) {
  if (without_newline(text) == "max") return HR_NO_LIMIT;
  return count_in(text);
}

bool FlatKeyed::next() {
  std::string_view line;
  while (take_line(rest_, line)) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const auto value = digits(line.substr(space + 1));
    if (!value) continue;
    key_ = line.substr(0, space);
    value_ = *value;
    return true;
  }
  return false;
}

std::optional<std::uint64_t> meminfo_bytes(std::string_view text, std::string_view key) {
  const std::size_t at = text.starts_with(key) ? 0 : text.find(std::string("\n").append(key));
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(text.find(':', at) + 1);
  text = text.substr(0, text.find('\n'));
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos || !text.ends_with(" kB")) return std::nullopt;
  const auto kilobytes = count_in(text.substr(first, text.size() - first - 3));
  std::uint64_t bytes = 0;
  if (!kilobytes || __builtin_mul_overflow(*kilobytes, 1024u, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<std::uint64_t> pressure_total(std::string_view text, std::string_view kind) {
  constexpr std::string_view kTotal = " total=";
  std::string_view line;
  while (take_line(text, line)) {
    if (!line.starts_with(kind) || line.size() <= kind.size() || line[kind.size()] != ' ') continue;
    const std::size_t at = line.find(kTotal);
    if (at == std::string_view::npos) return std::nullopt;
    return digits(line.substr(at + kTotal.size()));
  }
  return std::nullopt;
}

std::optional<CpuQuota> quota_in(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto quota = limit_in(text.substr(0, space));
  const auto period = count_in(text.substr(space + 1));
  if (!quota || !period) return std::nullopt;
  return CpuQuota{*quota, *period};
}

BlockMajors block_majors_in(std::string_view proc_devices) {
  BlockMajors majors;
  bool blocks = false;
  std::string_view line;
  while (take_line(proc_devices, line)) {
    if (line == "Block devices:") blocks = true;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t space = line.find(' ');
    if (!blocks || space == std::string_view::npos) continue;
    const auto major = digits(line.substr(0, space));
    if (!major || *major >= majors.known.size()) continue;
    const std::string_view name = line.substr(space + 1);
    majors.known.set(*major);
    majors.stacked.set(*major, name == "device-mapper" || name == "md" || name == "mdp");
  }
  return majors;
}

IoTotals io_totals(std::string_view text, const BlockMajors& majors) {
  IoTotals sum;
  struct {
    std::string_view key;
    std::uint64_t* total;
  } const wanted[] = {{"rbytes=", &sum.rbytes},
                      {"wbytes=", &sum.wbytes},
                      {"rios=", &sum.rios},
                      {"wios=", &sum.wios}};
  std::string_view line;
  while (take_line(text, line)) {
    if (const auto major = digits(line.substr(0, line.find(':')));
        major && *major < majors.known.size()) {
      if (majors.stacked[*major]) continue;
      if (!majors.known[*major]) sum.unknown_major = *major;
    }
    for (std::size_t space = line.find(' '); space != std::string_view::npos;
         space = line.find(' ')) {
      line.remove_prefix(space + 1);
      for (const auto& want : wanted) {
        if (!line.starts_with(want.key)) continue;
        const std::string_view word = line.substr(want.key.size());
        *want.total += digits(word.substr(0, word.find(' '))).value_or(0);
      }
    }
  }
  return sum;
}

}  // namespace headroom::observe
