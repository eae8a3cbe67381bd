// SPDX-License-Identifier: Apache-2.0
#include "simulate/trace/trace_reader.h"

#include "simulate/trace/trace_lines.h"

#include <algorithm>
#include <array>

namespace headroom::simulate {
namespace {

// A gap within a series that is longer than this is taken for an error of the clock.
constexpr double kLongestGap = 24 * 3600;

Duration span(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::string text_of(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<TraceFormat> trace_format_named(std::string_view name) {
  for (std::size_t i = 0; i < kTraceFormatNames.size(); ++i)
    if (kTraceFormatNames[i] == name) return static_cast<TraceFormat>(i);
  return std::nullopt;
}

void SeriesBuilder::add(std::string_view name, double seconds, double value, double limit) {
  auto found = series_.find(name);
  if (found == series_.end()) found = series_.emplace(std::string(name), Samples{}).first;
  Samples& all = found->second;
  if (in_order_ && !all.samples.empty() && seconds <= all.samples.back().seconds)
    return lines_.complain("the time of " + found->first + " goes from " +
                           text_of(all.samples.back().seconds) + " (line " +
                           std::to_string(all.samples.back().line) + ") to " + text_of(seconds) +
                           ": expected a later time");
  all.samples.push_back({seconds, value, lines_.number()});
  all.limit = std::max(all.limit, limit);
}

std::shared_ptr<const MemorySeries> SeriesBuilder::make(const std::string& name, Samples& all) {
  std::sort(all.samples.begin(), all.samples.end(), [](const Sample& a, const Sample& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.line < b.line;
  });
  auto series = std::make_shared<MemorySeries>();
  series->name = name;
  series->limit = all.limit;
  const Sample* before = nullptr;
  for (const Sample& sample : all.samples) {
    if (before && sample.seconds == before->seconds) {
      lines_.complain(sample.line, name + " has a second value for the time of line " +
                                       std::to_string(before->line));
      continue;
    }
    if (before && sample.seconds - before->seconds > kLongestGap)
      lines_.complain(sample.line, "the time of " + name + " jumps by " +
                                       text_of(sample.seconds - before->seconds) +
                                       " s after line " + std::to_string(before->line) +
                                       ": expected less than a day");
    before = &sample;
    series->at.push_back(span(sample.seconds - all.samples.front().seconds));
    series->values.push_back(sample.value);
  }
  return series;
}

std::vector<std::shared_ptr<const MemorySeries>> SeriesBuilder::take() {
  std::vector<std::shared_ptr<const MemorySeries>> made;
  for (auto& [name, all] : series_)
    made.push_back(make(name, all));
  return made;
}

namespace {

// --- files with a header: columns are found by their names ---------------------------------------

class Columns {
 public:
  Columns(TraceLines& lines, std::vector<std::vector<std::string_view>> names) : lines_(lines) {
    if (!lines.next()) {
      lines.complain(1, "the file is empty: expected a header");
      return;
    }
    const auto header = lines.fields();
    count_ = header.size();
    for (const auto& spellings : names) {
      const auto found =
          std::find_first_of(header.begin(), header.end(), spellings.begin(), spellings.end());
      if (found == header.end())
        lines.complain("the header has no column " + std::string(spellings.front()));
      places_.push_back(static_cast<std::size_t>(found - header.begin()));
    }
  }
  // The next line of the right length; null: there are no more.
  const std::vector<std::string_view>* next() {
    if (count_ == 0 || std::count(places_.begin(), places_.end(), count_) > 0) return nullptr;
    while (lines_.next()) {
      const auto& fields = lines_.fields();
      if (fields.size() == count_) return &fields;
      lines_.complain("the line has " + std::to_string(fields.size()) + " columns, the header " +
                      std::to_string(count_));
    }
    return nullptr;
  }
  std::size_t place(std::size_t column) const { return places_[column]; }

 private:
  TraceLines& lines_;
  std::size_t count_ = 0;
  std::vector<std::size_t> places_;
};

void read_memory_share(TraceLines& lines, Trace& trace) {
  Columns columns(lines, {{"value"}, {"timestamp_anon", "timestamp"}, {"container_ip", "name"}});
  SeriesBuilder builder(lines, true);
  while (const auto* fields = columns.next()) {
    const auto value = lines.number((*fields)[columns.place(0)], "value");
    const auto seconds = lines.number((*fields)[columns.place(1)], "timestamp");
    if (value && seconds) builder.add((*fields)[columns.place(2)], *seconds, *value, 1);
  }
  trace.series = builder.take();
}

// Times in microseconds, memory as a share of the largest machine's.
void read_google(TraceLines& lines, Trace& trace) {
  Columns columns(lines, {{"start_time"},
                          {"collection_id"},
                          {"instance_index"},
                          {"average_usage.memory", "average_usage_memory"},
                          {"assigned_memory"}});
  SeriesBuilder builder(lines, false);
  while (const auto* fields = columns.next()) {
    const auto start = lines.number((*fields)[columns.place(0)], "start_time");
    const auto used = lines.number((*fields)[columns.place(3)], "average_usage.memory");
    const auto limit = lines.number((*fields)[columns.place(4)], "assigned_memory");
    if (!start || !used || !limit) continue;
    const std::string name =
        std::string((*fields)[columns.place(1)]) + "-" + std::string((*fields)[columns.place(2)]);
    builder.add(name, *start / 1e6, *used, *limit);
  }
  trace.series = builder.take();
}

// --- files without one ---------------------------------------------------------------------------

const std::vector<std::string_view>* next_row(TraceLines& lines, std::size_t count) {
  while (lines.next()) {
    const auto& fields = lines.fields();
    if (fields.size() == count) return &fields;
    lines.complain("the line has " + std::to_string(fields.size()) + " columns: expected " +
                   std::to_string(count));
  }
  return nullptr;
}

// container_id, machine_id, time_stamp (seconds), cpu_util_percent, mem_util_percent, cpi, mem_gps,
// mpki, net_in, net_out, disk_io_percent. An empty percentage is a missing sample.
void read_alibaba(TraceLines& lines, Trace& trace) {
  SeriesBuilder builder(lines, false);
  while (const auto* fields = next_row(lines, 11)) {
    if ((*fields)[4].empty()) continue;
    const auto seconds = lines.number((*fields)[2], "time_stamp");
    const auto percent = lines.number((*fields)[4], "mem_util_percent");
    if (percent && *percent > 100)
      lines.complain("mem_util_percent is " + std::string((*fields)[4]) + ": expected at most 100");
    else if (seconds && percent)
      builder.add((*fields)[0], *seconds, *percent, 100);
  }
  trace.series = builder.take();
}

// A number, or ">24": more than the largest bucket, taken as that bucket.
std::optional<double> bucket(TraceLines& lines, std::string_view field, std::string_view name) {
  if (field.starts_with('>')) field.remove_prefix(1);
  return lines.number(field, name);
}

// vmid, subscriptionid, deploymentid, vmcreated, vmdeleted (seconds), maxcpu, avgcpu, p95maxcpu,
// vmcategory, vmcorecountbucket, vmmemorybucket (GiB).
void read_azure_v2(TraceLines& lines, Trace& trace) {
  while (const auto* fields = next_row(lines, 11)) {
    const auto created = lines.number((*fields)[3], "vmcreated");
    const auto deleted = lines.number((*fields)[4], "vmdeleted");
    const auto cores = bucket(lines, (*fields)[9], "vmcorecountbucket");
    const auto memory = bucket(lines, (*fields)[10], "vmmemorybucket");
    if (!created || !deleted || !cores || !memory) continue;
    if (*deleted < *created)
      lines.complain("vmdeleted is before vmcreated");
    else
      trace.arrivals.push_back({.at = span(*created),
                                .runs = span(*deleted - *created),
                                .milli_cpu = static_cast<std::int64_t>(*cores * 1000),
                                .memory = {static_cast<std::int64_t>(*memory * 0x1p30)}});
  }
  std::stable_sort(trace.arrivals.begin(), trace.arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
}

using Flavours = std::map<std::string, Arrival, std::less<>>;

Flavours read_flavours(TraceLines& lines) {
  Flavours flavours;
  while (lines.next()) {
    const auto fields = lines.fields(' ');
    const std::string_view sizes = fields[0];
    const std::size_t comma = sizes.find(',');
    if (fields.size() != 2 || comma == std::string_view::npos) {
      lines.complain("expected \"cores,GiB letter\"");
      continue;
    }
    const auto cores = lines.number(sizes.substr(0, comma), "cores");
    const auto memory = lines.number(sizes.substr(comma + 1), "memory");
    if (cores && memory)
      flavours[std::string(fields[1])] = {.milli_cpu = static_cast<std::int64_t>(*cores * 1000),
                                          .memory = {static_cast<std::int64_t>(*memory * 0x1p30)}};
  }
  return flavours;
}

void add_arrivals(TraceLines& lines, const Flavours& flavours, double seconds,
                  std::string_view list, Trace& trace) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view letter = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (letter == "|" || letter.empty()) continue;  // the end of a user's batch
    const auto flavour = flavours.find(letter);
    if (flavour == flavours.end()) {
      lines.complain("the flavour \"" + std::string(letter.substr(0, 20)) +
                     "\" is not in the file of flavours");
      continue;
    }
    Arrival arrival = flavour->second;
    arrival.at = span(seconds);
    trace.arrivals.push_back(arrival);
  }
}

void read_azure_v1(TraceLines& lines, const Flavours& flavours, Trace& trace) {
  double before = -1;
  while (lines.next()) {
    const std::string_view line = lines.line();
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      lines.complain("expected \"seconds flavour,flavour,|\"");
      continue;
    }
    const auto seconds = lines.number(line.substr(0, space), "the time");
    if (!seconds) continue;
    if (*seconds <= before)
      lines.complain("the time goes from " + text_of(before) + " to " + text_of(*seconds) +
                     ": expected a later time");
    before = *seconds;
    add_arrivals(lines, flavours, *seconds, line.substr(space + 1), trace);
  }
}

}  // namespace

tl::expected<Trace, TraceErrors> read_trace(TraceFormat format, std::string_view file,
                                            std::string text, std::string_view flavours,
                                            TraceErrors* skipped) {
  Trace trace;
  if (format == TraceFormat::kRecording) {
    auto series = read_recorded_use(file, std::move(text));
    if (!series) return tl::make_unexpected(TraceErrors{series.error().what});
    trace.series = std::move(*series);
    return trace;
  }
  TraceLines lines(std::string(file), text);
  switch (format) {
    case TraceFormat::kMemoryShare:
      read_memory_share(lines, trace);
      break;
    case TraceFormat::kAlibaba2018:
      read_alibaba(lines, trace);
      break;
    case TraceFormat::kGoogle2019:
      read_google(lines, trace);
      break;
    case TraceFormat::kAzureV2:
      read_azure_v2(lines, trace);
      break;
    case TraceFormat::kAzureV1: {
      TraceLines flavour_lines(std::string(file) + " (flavours)", flavours);
      const Flavours known = read_flavours(flavour_lines);
      if (flavour_lines.failed()) return tl::make_unexpected(flavour_lines.take_errors());
      read_azure_v1(lines, known, trace);
      break;
    }
    case TraceFormat::kRecording:
      break;
  }
  const bool empty = trace.series.empty() && trace.arrivals.empty();
  if (empty && !lines.failed()) lines.complain(1, "the file has no sample");
  if (lines.failed() && (empty || !skipped)) return tl::make_unexpected(lines.take_errors());
  if (skipped)
    for (std::string& error : lines.take_errors())
      skipped->push_back(std::move(error));
  return trace;
}

}  // namespace headroom::simulate
