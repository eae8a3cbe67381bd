// SPDX-License-Identifier: Apache-2.0
#include "ctl/explain_minute.h"

#include "ctl/record_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Values = std::vector<std::optional<std::int64_t>>;

// A line of the terminal takes so many marks.
constexpr std::size_t kMarks = 60;
// So many seconds before the end, in the table of pods.
constexpr std::array<int, 4> kColumns{60, 30, 10, 0};

const Json& list(const Json& minute, const char* key) {
  static const Json kNone = Json::array();
  const Json& found = at(minute, {key});
  return found.is_array() ? found : kNone;
}

double ms_of(const Json& row) {
  const Json& ms = at(row, {"ms"});
  return ms.is_number() ? ms.get<double>() : 0;
}

Values values_of(const Json& rows, std::string_view signal) {
  const std::string key(signal);
  Values values;
  for (const Json& row : rows)
    values.push_back(integer(at(row, {"available", key.c_str()})));
  if (values.size() > kMarks) values.erase(values.begin(), values.end() - kMarks);
  return values;
}

bool any(const Values& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const auto& value) { return value.has_value(); });
}

// "memory.available, a mark a second: 2.1Gi ▇▆▅▃▁ 52Mi"
std::string drawn(std::string_view signal, std::string_view over, const Values& values) {
  return fmt::format("{}: {} {} {}\n", over, amount(signal, values.front()), sparkline(values),
                     amount(signal, values.back()));
}

double span_of(const Json& rows, std::size_t marks) {
  if (rows.empty()) return 0;
  return (ms_of(rows.back()) - ms_of(rows[rows.size() - std::min(marks, rows.size())])) / 1e3;
}

// --- the pods ----------------------------------------------------------------------------------

struct Held {
  std::array<std::optional<std::int64_t>, kColumns.size()> then;
  std::optional<std::int64_t> stalled_first, stalled_last;
  std::string name;
};

// The row nearest to so long before the end, if there is one within two seconds of it.
const Json* row_at(const Json& rows, int seconds_ago) {
  const Json* nearest = nullptr;
  const auto off = [&](const Json& row) { return std::abs(ms_of(row) + seconds_ago * 1e3); };
  for (const Json& row : rows)
    if (off(row) <= 2000 && (!nearest || off(row) < off(*nearest))) nearest = &row;
  return nearest;
}

std::map<std::string, Held> pods_of(const Json& rows) {
  std::map<std::string, Held> pods;
  for (const Json& row : rows)
    for (const Json& pod : list(row, "pods")) {
      Held& held = pods[text(at(pod, {"uid"}))];
      held.name = text(at(pod, {"namespace"})) + "/" + text(at(pod, {"name"}));
      const auto stalled = integer(at(pod, {"stalled_ns"}));
      if (!held.stalled_first) held.stalled_first = stalled;
      held.stalled_last = stalled;
    }
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (const Json* row = row_at(rows, kColumns[i]))
      for (const Json& pod : list(*row, "pods"))
        pods[text(at(pod, {"uid"}))].then[i] = integer(at(pod, {"working_set"}));
  return pods;
}

std::string stalled(const Held& held) {
  if (!held.stalled_first || !held.stalled_last) return "-";
  return seconds(static_cast<double>(*held.stalled_last - *held.stalled_first) / 1e9);
}

std::string pod_table(const Json& rows, const Screen& screen) {
  std::vector<Held> pods;
  for (auto& [uid, held] : pods_of(rows))
    pods.push_back(held);
  if (pods.empty()) return "";
  std::stable_sort(pods.begin(), pods.end(),
                   [](const Held& a, const Held& b) { return a.then.back() > b.then.back(); });
  if (pods.size() > 5) pods.resize(5);
  std::vector<Row> table_rows{{}};
  for (const char* title : {"HELD MOST", "60s BEFORE", "30s", "10s", "THEN", "STALLED"})
    table_rows[0].push_back({title, Colour::kBold});
  for (const Held& held : pods) {
    Row row{{held.name}};
    for (const auto& value : held.then)
      row.push_back({bytes(value)});
    row.push_back({stalled(held)});
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

std::string minute_told(const Json& minute, std::string_view signal, const Screen& screen) {
  const Json& by_second = list(minute, "seconds");
  const Json& by_turn = list(minute, "turns");
  const Values slow = values_of(by_second, signal), fast = values_of(by_turn, signal);
  if (!any(slow) && !any(fast)) return "";
  std::string told =
      painted("The last minute", Colour::kBold, screen) + " of " + std::string(signal) + '\n';
  if (any(slow)) told += drawn(signal, "a mark a second", slow);
  if (any(fast))
    told += drawn(
        signal,
        fmt::format("the last {} checks, over {}", fast.size(), seconds(span_of(by_turn, kMarks))),
        fast);
  if (const std::string pods = pod_table(list(minute, "pods"), screen); !pods.empty())
    told += '\n' + pods;
  return told;
}

}  // namespace headroom::ctl
