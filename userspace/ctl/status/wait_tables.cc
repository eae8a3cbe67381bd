// SPDX-License-Identifier: Apache-2.0
#include "ctl/status/wait_tables.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

constexpr std::size_t kMaxRows = 5;

struct TopWaiter {
  const PodStatus* pod;
  std::string_view cause;
  const WaitStatus* waits;
};

std::string time(std::int64_t ns) {
  return seconds(static_cast<double>(ns) / 1e9);
}

std::vector<TopWaiter> longest_waits(const Status& status) {
  std::vector<TopWaiter> all;
  for (const PodStatus& pod : status.pods) {
    if (!pod.stalls) continue;
    for (const auto& [cause, waits] : *pod.stalls)
      if (waits.ns > 0) all.push_back({&pod, cause, &waits});
  }
  std::stable_sort(all.begin(), all.end(), [](const TopWaiter& a, const TopWaiter& b) {
    return a.waits->ns > b.waits->ns;
  });
  if (all.size() > kMaxRows) all.resize(kMaxRows);
  return all;
}

}  // namespace

std::string stall_totals(const Status& status) {
  const auto program = status.programs.find("stall");
  if (program == status.programs.end() || !program->second.loaded) return "-";
  std::string text;
  for (const auto& [cause, waits] : status.stalls)
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : "  ", printable(cause), time(waits.ns),
                        waits.count);
  return text.empty() ? "none" : text;
}

std::string top_waiters_table(const Status& status, const Screen& screen) {
  std::vector<Row> rows;
  Row titles;
  for (const char* title : {"WAITED FOR MEMORY", "CAUSE", "TIME", "WAITS", "99% BELOW"})
    titles.push_back({title, Colour::kBold});
  rows.push_back(std::move(titles));
  for (const TopWaiter& each : longest_waits(status))
    rows.push_back({{printable(each.pod->pod_namespace + "/" + each.pod->name)},
                    {printable(each.cause)},
                    {time(each.waits->ns)},
                    {std::to_string(each.waits->count)},
                    {each.waits->p99_ns ? time(*each.waits->p99_ns) : "-"}});
  return rows.size() == 1 ? "" : table(rows, 2, screen);
}

std::string top_stall_cause(const PodStatus& before, const PodStatus& now, double elapsed_seconds) {
  if (elapsed_seconds <= 0 || !now.stalls) return "-";
  const StallsByCause before_stalls = before.stalls.value_or(StallsByCause{});
  std::string_view top_cause;
  std::int64_t most = 0;
  for (const auto& [cause, waits] : *now.stalls) {
    const auto earlier = before_stalls.find(cause);
    const std::int64_t grown = waits.ns - (earlier == before_stalls.end() ? 0 : earlier->second.ns);
    if (grown <= most) continue;
    most = grown;
    top_cause = cause;
  }
  if (top_cause.empty()) return "-";
  return fmt::format("{} {:.1f}%", printable(top_cause),
                     static_cast<double>(most) / 1e7 / elapsed_seconds);
}

std::string program_line(const Status& status) {
  std::string line = "programs:";
  for (const auto& [name, program] : status.programs) {
    line += fmt::format(" {}={}", printable(name),
                        program.loaded ? printable(program.hook) : std::string("not-loaded"));
    if (program.lost > 0) line += fmt::format(" (lost {})", program.lost);
  }
  return line + '\n';
}

}  // namespace headroom::ctl
