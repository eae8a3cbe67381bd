// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/top_text.h"

#include "ctl/common/commands.h"

#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

std::string plain_threshold(const ThresholdStatus& threshold) {
  const std::string& signal = threshold.signal;
  std::string line = fmt::format("{}: {} left, {} threshold {}", printable(signal),
                                 amount(signal, threshold.available), printable(threshold.kind),
                                 amount(signal, threshold.limit));
  if (threshold.met)
    line += ", met";
  else if (threshold.below_for_seconds)
    line += ", below for " + seconds(threshold.below_for_seconds);
  else if (threshold.forecast_seconds)
    line += ", reached in " + seconds(threshold.forecast_seconds);
  return line + ".\n";
}

std::string plain_pod(const PodSample& sample, const TopSettings& settings) {
  std::string line;
  for (const std::string& name : settings.columns) {
    const PodColumn* const column = pod_column(name);
    if (!column) continue;
    const std::string text = column->cell(sample).text;
    if (text == "-") continue;  // unknown
    if (line.empty())
      line = text + ": ";
    else
      line += fmt::format("{}{} {}", line.ends_with(": ") ? "" : ", ", column->title, text);
  }
  return line + ".\n";
}

std::string ordinal(std::int64_t n) {
  const bool teen = n % 100 >= 11 && n % 100 <= 13;
  const char* suffix = teen          ? "th"
                       : n % 10 == 1 ? "st"
                       : n % 10 == 2 ? "nd"
                       : n % 10 == 3 ? "rd"
                                     : "th";
  return std::to_string(n) + suffix;
}

// The names of the values without the alignment of a table.
std::string plain_rows(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows)
    text += row[0].text + ": " + row[1].text + '\n';
  return text;
}

// Of the pod that is asked for.
std::vector<Row> requested_detail(const Status* before, const Status& now,
                                  const TopRequest& request) {
  const std::vector<PodSample> pods = pod_samples(before, now);
  const PodSample* const found = find_pod(pods, request.pod);
  if (!found)
    return {{{"pod", Colour::kDim}, {printable(request.pod) + " does not exist", Colour::kRed}}};
  return pod_detail(*found, now);
}

std::string order_text(const PodStatus& pod) {
  if (pod.eviction_order)
    return "would be evicted " + ordinal(*pod.eviction_order) + " for memory.available";
  if (pod.state == "critical") return "never evicted: critical";
  return "not in the ranking";
}

}  // namespace

const PodSample* find_pod(const std::vector<PodSample>& pods, std::string_view name) {
  for (const PodSample& each : pods)
    if (each.pod->pod_namespace + '/' + each.pod->name == name || each.pod->name == name ||
        each.pod->uid == name)
      return &each;
  return nullptr;
}

std::vector<PodSample> requested_pods(const Status* before, const Status& now,
                                      const TopRequest& request) {
  std::vector<PodSample> pods = pod_samples(before, now);
  std::erase_if(pods,
                [&](const PodSample& each) { return !matches_filter(*each.pod, request.filter); });
  sort_pods(pods, request.settings);
  return pods;
}

std::vector<Row> pod_rows(const std::vector<PodSample>& pods, const TopSettings& settings) {
  std::vector<const PodColumn*> columns;
  for (const std::string& name : settings.columns)
    if (const PodColumn* column = pod_column(name)) columns.push_back(column);
  std::vector<Row> rows(1);
  for (const PodColumn* column : columns)
    rows.front().push_back({std::string(column->title), Colour::kBold});
  for (const PodSample& pod : pods) {
    Row row;
    for (const PodColumn* column : columns)
      row.push_back(column->cell(pod));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string render_top(const Status* before, const Status& now, const Screen& screen,
                       const TopRequest& request) {
  if (!request.pod.empty()) return table(requested_detail(before, now, request), 2, screen);
  std::string text = heading(now, screen);
  text += '\n' + threshold_table(now, screen);
  text += '\n' + memory_location_line(now) + condition_line(now, screen) + '\n';
  return text + table(pod_rows(requested_pods(before, now, request), request.settings),
                      left_columns(request.settings), screen);
}

std::string render_plain(const Status* before, const Status& now, const TopRequest& request) {
  if (!request.pod.empty()) return plain_rows(requested_detail(before, now, request));
  std::string text = heading(now, {});
  for (const ThresholdStatus& threshold : now.thresholds)
    text += plain_threshold(threshold);
  for (const auto& [name, holds] : now.conditions)
    if (holds) text += printable(name) + " is reported.\n";
  const std::vector<PodSample> pods = requested_pods(before, now, request);
  text += fmt::format("{} of {} pods, sorted by {}.\n", pods.size(), now.pods.size(),
                      request.settings.sort);
  for (const PodSample& pod : pods)
    text += plain_pod(pod, request.settings);
  return text;
}

std::vector<Row> pod_detail(const PodSample& sample, const Status& now) {
  const PodStatus& pod = *sample.pod;
  std::vector<Row> rows{
      {{"pod", Colour::kDim}, {printable(pod.pod_namespace + "/" + pod.name), Colour::kBold}},
      {{"uid", Colour::kDim}, {printable(pod.uid)}},
      {{"ranking", Colour::kDim}, {order_text(pod)}}};
  for (const PodColumn& column : pod_columns().subspan(1))
    if (Cell cell = column.cell(sample); cell.text != "-" && column.name != "order") {
      cell.text += fmt::format("  ({})", column.description);
      rows.push_back({{std::string(column.name), Colour::kDim}, std::move(cell)});
    }
  for (const auto& [cause, waits] : pod.stalls.value_or(StallsByCause{}))
    rows.push_back(
        {{"waits: " + printable(cause), Colour::kDim},
         {fmt::format("{} in {} waits, 99% below {}", seconds(static_cast<double>(waits.ns) / 1e9),
                      waits.count,
                      waits.p99_ns ? seconds(static_cast<double>(*waits.p99_ns) / 1e9) : "-")}});
  for (const std::string& field : pod.ignored)
    rows.push_back({{"ignored", Colour::kDim}, {printable(field), Colour::kYellow}});
  if (!now.audit_log.empty())
    rows.push_back({{"record", Colour::kDim},
                    {"headroomctl why " + printable(pod.pod_namespace + "/" + pod.name)}});
  return rows;
}

}  // namespace headroom::ctl
