// SPDX-License-Identifier: Apache-2.0
#include "ctl/simulate/trace_files.h"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>

namespace headroom::ctl {

Result<std::string> read_text(const std::string& name) {
  if (name == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return errno_failure("read " + name, errno ? errno : EISDIR);
  return text;
}

void read_trace_option(const std::string& option, bool skip_errors, Traces& traces,
                       Errors& errors) {
  const std::size_t equals = option.find('=');
  const auto format = simulate::trace_format_named(option.substr(0, equals));
  if (!format || equals == std::string::npos) {
    std::string names;
    for (const std::string_view each : simulate::kTraceFormatNames)
      names.append(names.empty() ? "" : ", ").append(each);
    return errors.add("--trace " + option + ": expected FORMAT=FILE, where FORMAT is one of " +
                      names);
  }
  std::string file = option.substr(equals + 1), flavours;
  if (*format == simulate::TraceFormat::kAzureV1) {
    const std::size_t comma = file.find(',');
    if (comma == std::string::npos)
      return errors.add("--trace " + option + ": expected azure-v1=ARRIVALS,FLAVOURS");
    const auto text = read_text(file.substr(comma + 1));
    if (!text) return errors.add(text.error().what);
    flavours = *text;
    file.resize(comma);
  }
  auto text = read_text(file);
  if (!text) return errors.add(text.error().what);
  simulate::TraceErrors skipped;
  auto trace = simulate::read_trace(*format, file, std::move(*text), flavours,
                                    skip_errors ? &skipped : nullptr);
  for (const std::string& what : skipped)
    print_error(Error{what + "; the line is left out"});
  if (!trace) {
    for (std::string& what : trace.error())
      errors.add(std::move(what));
    return;
  }
  traces.series.insert(traces.series.end(), trace->series.begin(), trace->series.end());
  traces.arrivals.insert(traces.arrivals.end(), trace->arrivals.begin(), trace->arrivals.end());
}

}  // namespace headroom::ctl
