// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/top_view.h"

#include "ctl/common/commands.h"
#include "ctl/status/wait_tables.h"

#include <algorithm>
#include <unordered_map>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

// The result is never negative: totals of a cgroup may decrease (utime and stime are scaled).
std::optional<double> rate(std::optional<std::int64_t> before, std::optional<std::int64_t> now,
                           double elapsed_seconds) {
  if (!before || !now || elapsed_seconds <= 0) return std::nullopt;
  return std::max(0.0, static_cast<double>(*now - *before) / 1e9 / elapsed_seconds);
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : "-";
}
std::string cpus(std::optional<double> rate) {
  return rate ? fmt::format("{:.2f}", *rate) : "-";
}

Colour colour_of(const PodStatus& pod) {
  if (pod.state == "terminating" || pod.state == "killed" || pod.state == "timed_out")
    return Colour::kRed;
  if (pod.state == "would_evict" || pod.state == "unknown") return Colour::kYellow;
  if (pod.state == "critical" || pod.state == "empty") return Colour::kDim;
  return Colour::kNone;
}

Row pod_row(const PodStatus& pod, const Rates& rates) {
  const bool over = pod.over && *pod.over > 0;
  return {{printable(pod.pod_namespace + "/" + pod.name)},
          {printable(pod.qos)},
          {printable(pod.state), colour_of(pod)},
          {std::to_string(pod.priority)},
          {bytes(pod.working_set)},
          {bytes(pod.request)},
          {bytes(pod.over), over ? Colour::kYellow : Colour::kNone},
          {cpus(rates.cpus)},
          {percent(rates.memory_waiting)},
          {percent(rates.throttled)},
          {rates.stall}};
}

Row titles() {
  Row row;
  for (const char* title : {"POD", "QOS", "STATE", "PRIORITY", "WORKING SET", "REQUEST", "OVER",
                            "CPUS", "MEM WAIT", "THROTTLED", "STALL"})
    row.push_back({title, Colour::kBold});
  return row;
}

using PodsByUid = std::unordered_map<std::string, const PodStatus*>;

PodsByUid by_uid(const Status* before) {
  PodsByUid earlier;
  if (!before) return earlier;
  for (const PodStatus& pod : before->pods)
    earlier.emplace(pod.uid, &pod);
  return earlier;
}

double elapsed_between(const Status* before, const Status& now) {
  if (!before || !before->pods_at_ns || !now.pods_at_ns) return 0;
  return static_cast<double>(*now.pods_at_ns - *before->pods_at_ns) / 1e9;
}

// Furthest over its request first, then the largest; unknown values are last.
std::vector<const PodStatus*> sorted(const Status& status) {
  std::vector<const PodStatus*> pods;
  for (const PodStatus& pod : status.pods)
    pods.push_back(&pod);
  std::stable_sort(pods.begin(), pods.end(), [](const PodStatus* a, const PodStatus* b) {
    if (a->over != b->over) return a->over > b->over;
    return a->working_set > b->working_set;
  });
  return pods;
}

std::vector<Row> pod_rows(const Status* before, const Status& now, std::size_t room) {
  const PodsByUid earlier = by_uid(before);
  const double elapsed = elapsed_between(before, now);
  std::vector<Row> rows{titles()};
  for (const PodStatus* pod : sorted(now)) {
    if (rows.size() > room) break;
    const auto known = earlier.find(pod->uid);
    const Rates rates =
        known == earlier.end() ? Rates{} : rates_between(*known->second, *pod, elapsed);
    rows.push_back(pod_row(*pod, rates));
  }
  return rows;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Rows left for pods below `above`, the titles and the remark; all if the height is unlimited.
std::size_t room_for_pods(const Screen& screen, const std::string& above) {
  if (screen.rows == 0) return static_cast<std::size_t>(-1);
  const std::size_t taken = lines_of(above) + 2;
  return screen.rows > taken ? screen.rows - taken : 0;
}

}  // namespace

Rates rates_between(const PodStatus& before, const PodStatus& now, double elapsed_seconds) {
  return {.cpus = rate(before.cpu, now.cpu, elapsed_seconds),
          .throttled = rate(before.throttled, now.throttled, elapsed_seconds),
          .memory_waiting = rate(before.memory_waiting, now.memory_waiting, elapsed_seconds),
          .stall = top_stall_cause(before, now, elapsed_seconds)};
}

std::string render_top(const Status* before, const Status& now, const Screen& screen,
                       const std::string& remark) {
  std::string text = heading(now, screen);
  text += '\n' + threshold_table(now, screen);
  text += '\n' + condition_line(now, screen) + '\n';
  text += table(pod_rows(before, now, room_for_pods(screen, text)), 3, screen);
  if (!remark.empty()) text += table({{{printable(remark), Colour::kRed}}}, 1, screen);
  return text;
}

}  // namespace headroom::ctl
