// SPDX-License-Identifier: Apache-2.0
#include "ctl/evictions/explain_flight_recording.h"

#include "ctl/common/json_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Values = std::vector<std::optional<std::int64_t>>;

// Marks on one line.
constexpr std::size_t kMarks = 60;
// Columns of the table of pods: seconds before the end.
constexpr std::array<int, 4> kColumns{60, 30, 10, 0};

const nlohmann::json& list(const nlohmann::json& flight_recording, const char* key) {
  static const nlohmann::json kNone = nlohmann::json::array();
  const nlohmann::json& found = at(flight_recording, {key});
  return found.is_array() ? found : kNone;
}

double ms_of(const nlohmann::json& row) {
  const nlohmann::json& ms = at(row, {"ms"});
  return ms.is_number() ? ms.get<double>() : 0;
}

Values values_of(const nlohmann::json& rows, std::string_view signal) {
  const std::string key(signal);
  Values values;
  for (const nlohmann::json& row : rows)
    values.push_back(integer(at(row, {"available", key.c_str()})));
  if (values.size() > kMarks) values.erase(values.begin(), values.end() - kMarks);
  return values;
}

bool any(const Values& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const auto& value) { return value.has_value(); });
}

// "one mark per second: 2.1Gi ▇▆▅▃▁ 52Mi"
std::string sparkline_line(std::string_view signal, std::string_view over, const Values& values) {
  return fmt::format("{}: {} {} {}\n", over, amount(signal, values.front()), sparkline(values),
                     amount(signal, values.back()));
}

double span_of(const nlohmann::json& rows, std::size_t marks) {
  if (rows.empty()) return 0;
  return (ms_of(rows.back()) - ms_of(rows[rows.size() - std::min(marks, rows.size())])) / 1e3;
}

// --- the pods ----------------------------------------------------------------------------------

struct PodMemory {
  std::array<std::optional<std::int64_t>, kColumns.size()> then;
  std::optional<std::int64_t> stalled_first, stalled_last;
  std::string name;
};

// The row nearest to this time before the end, if one is within two seconds of it; else null.
const nlohmann::json* row_at(const nlohmann::json& rows, int seconds_ago) {
  const nlohmann::json* nearest = nullptr;
  const auto off = [&](const nlohmann::json& row) {
    return std::abs(ms_of(row) + seconds_ago * 1e3);
  };
  for (const nlohmann::json& row : rows)
    if (off(row) <= 2000 && (!nearest || off(row) < off(*nearest))) nearest = &row;
  return nearest;
}

std::map<std::string, PodMemory> pods_of(const nlohmann::json& rows) {
  std::map<std::string, PodMemory> pods;
  for (const nlohmann::json& row : rows)
    for (const nlohmann::json& pod : list(row, "pods")) {
      PodMemory& pod_memory = pods[text(at(pod, {"uid"}))];
      pod_memory.name = text(at(pod, {"namespace"})) + "/" + text(at(pod, {"name"}));
      const auto stalled = integer(at(pod, {"stalled_ns"}));
      if (!pod_memory.stalled_first) pod_memory.stalled_first = stalled;
      pod_memory.stalled_last = stalled;
    }
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (const nlohmann::json* row = row_at(rows, kColumns[i]))
      for (const nlohmann::json& pod : list(*row, "pods"))
        pods[text(at(pod, {"uid"}))].then[i] = integer(at(pod, {"working_set"}));
  return pods;
}

std::string stalled(const PodMemory& pod_memory) {
  if (!pod_memory.stalled_first || !pod_memory.stalled_last) return "-";
  return seconds(static_cast<double>(*pod_memory.stalled_last - *pod_memory.stalled_first) / 1e9);
}

std::string pod_table(const nlohmann::json& rows, const Screen& screen) {
  std::vector<PodMemory> pods;
  for (auto& [uid, pod_memory] : pods_of(rows))
    pods.push_back(pod_memory);
  if (pods.empty()) return "";
  std::stable_sort(pods.begin(), pods.end(), [](const PodMemory& a, const PodMemory& b) {
    return a.then.back() > b.then.back();
  });
  if (pods.size() > 5) pods.resize(5);
  std::vector<Row> table_rows{{}};
  for (const char* title : {"LARGEST PODS", "60s BEFORE", "30s", "10s", "AT THE END", "STALLED"})
    table_rows[0].push_back({title, Colour::kBold});
  for (const PodMemory& pod_memory : pods) {
    Row row{{pod_memory.name}};
    for (const auto& value : pod_memory.then)
      row.push_back({bytes(value)});
    row.push_back({stalled(pod_memory)});
    table_rows.push_back(std::move(row));
  }
  return table(table_rows, 1, screen);
}

}  // namespace

std::string sparkline(const Values& values) {
  static constexpr std::array<std::string_view, 8> kMarksByHeight{"▁", "▂", "▃", "▄",
                                                                  "▅", "▆", "▇", "█"};
  std::optional<std::int64_t> least, most;
  for (const auto& value : values) {
    if (!value) continue;
    least = std::min(least.value_or(*value), *value);
    most = std::max(most.value_or(*value), *value);
  }
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    const double span = static_cast<double>(*most) - static_cast<double>(*least);
    const double height =
        span > 0 ? (static_cast<double>(*value) - static_cast<double>(*least)) / span : 0;
    line += kMarksByHeight[static_cast<std::size_t>(std::lround(height * 7))];
  }
  return line;
}

std::string render_flight_recording(const nlohmann::json& flight_recording, std::string_view signal,
                                    const Screen& screen) {
  const nlohmann::json& by_second = list(flight_recording, "seconds");
  const nlohmann::json& by_turn = list(flight_recording, "turns");
  const Values slow = values_of(by_second, signal), fast = values_of(by_turn, signal);
  if (!any(slow) && !any(fast)) return "";
  std::string page =
      colourise("The last minute", Colour::kBold, screen) + " of " + std::string(signal) + '\n';
  if (any(slow)) page += sparkline_line(signal, "one mark per second", slow);
  if (any(fast))
    page += sparkline_line(
        signal,
        fmt::format("the last {} checks, over {}", fast.size(), seconds(span_of(by_turn, kMarks))),
        fast);
  if (const std::string pods = pod_table(list(flight_recording, "pods"), screen); !pods.empty())
    page += '\n' + pods;
  return page;
}

}  // namespace headroom::ctl
