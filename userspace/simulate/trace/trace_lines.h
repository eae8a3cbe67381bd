// SPDX-License-Identifier: Apache-2.0
// TraceLines: the lines of a text file with their numbers, and the errors found in them.
#pragma once

#include "simulate/trace/trace_reader.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::simulate {

class TraceLines {
 public:
  TraceLines(std::string file, std::string_view text) : file_(std::move(file)), rest_(text) {}

  // Empty lines are skipped. False: there are no more.
  bool next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (!line_.empty()) return true;
    }
    return false;
  }
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }

  const std::vector<std::string_view>& fields(char separator = ',') {
    fields_.clear();
    std::string_view rest = line_;
    while (true) {
      const std::size_t end = rest.find(separator);
      fields_.push_back(rest.substr(0, end));
      if (end == std::string_view::npos) return fields_;
      rest.remove_prefix(end + 1);
    }
  }

  // Absent, and an error: the field is not a finite number of zero or more.
  std::optional<double> number(std::string_view field, std::string_view name) {
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error == std::errc{} && end == field.data() + field.size() && std::isfinite(value) &&
        value >= 0)
      return value;
    complain(std::string(name) + " is \"" + std::string(field.substr(0, 40)) +
             "\": expected a number of zero or more");
    return std::nullopt;
  }

  void complain(std::string what) { complain(number_, std::move(what)); }
  void complain(std::size_t line, std::string what) {
    if (errors_.size() < kMaxTraceErrors)
      errors_.push_back(file_ + ":" + std::to_string(line) + ": " + std::move(what));
    else
      ++more_;
  }
  TraceErrors take_errors() {
    if (more_ > 0) errors_.push_back(file_ + ": " + std::to_string(more_) + " more errors");
    return std::move(errors_);
  }
  bool failed() const { return !errors_.empty(); }

 private:
  std::string file_;
  std::string_view rest_, line_;
  std::size_t number_ = 0, more_ = 0;
  std::vector<std::string_view> fields_;
  TraceErrors errors_;
};

// Samples of several series, in any order of lines; the times of each are checked.
class SeriesBuilder {
 public:
  // `in_order`: the file is sorted by time, so a time before the one before is an error.
  SeriesBuilder(TraceLines& lines, bool in_order) : lines_(lines), in_order_(in_order) {}

  void add(std::string_view name, double seconds, double value, double limit);
  std::vector<std::shared_ptr<const MemorySeries>> take();

 private:
  struct Sample {
    double seconds, value;
    std::size_t line;
  };
  struct Samples {
    std::vector<Sample> samples;
    double limit = 0;
  };
  std::shared_ptr<const MemorySeries> make(const std::string& name, Samples& all);

  TraceLines& lines_;
  const bool in_order_;
  std::map<std::string, Samples, std::less<>> series_;
};

}  // namespace headroom::simulate
