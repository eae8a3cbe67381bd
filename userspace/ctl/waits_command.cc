// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/status/wait_tables.h"
#include "judge/resources/go_duration.h"

#include <headroom/waits.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPods = 20, kMaxPairs = 10;

struct WaitsOptions {
  std::string length;  // "": totals
  bool json = false;
};

// One pod's waits for a CPU: nanoseconds by cause, and their sum.
struct PodLine {
  const PodStatus* pod;
  CpuWaitsByCause waits;
  std::int64_t sum = 0;
};

// The waits since `before`; all of them if it is null.
CpuWaitsByCause grown(const CpuWaitsByCause& now, const CpuWaitsByCause* before) {
  CpuWaitsByCause waits = now;
  if (!before) return waits;
  for (auto& [cause, ns] : waits)
    for (const auto& [earlier_cause, earlier] : *before)
      if (earlier_cause == cause) ns = std::max<std::int64_t>(0, ns - earlier);
  return waits;
}

std::vector<PodLine> longest_waits(const Status& now, const Status* before) {
  std::map<std::string, const PodStatus*> earlier;
  if (before)
    for (const PodStatus& pod : before->pods)
      earlier.emplace(pod.uid, &pod);
  std::vector<PodLine> lines;
  for (const PodStatus& pod : now.pods) {
    if (!pod.cpu_waits) continue;
    const auto found = earlier.find(pod.uid);
    const bool known = found != earlier.end() && found->second->cpu_waits;
    PodLine line{.pod = &pod,
                 .waits = grown(*pod.cpu_waits, known ? &*found->second->cpu_waits : nullptr)};
    for (const auto& [cause, ns] : line.waits)
      line.sum += ns;
    if (line.sum > 0) lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const PodLine& a, const PodLine& b) { return a.sum > b.sum; });
  if (lines.size() > kMaxPods) lines.resize(kMaxPods);
  return lines;
}

// Waits that a pod cannot end by itself are the node's.
bool is_the_nodes(std::string_view cause) {
  return cause == name(CpuWaitCause::kNode) || cause == name(CpuWaitCause::kInterrupts);
}

// A time, or with `seconds` its share of them.
std::string wait_text(std::int64_t ns, double seconds_passed) {
  if (ns <= 0) return "-";
  if (seconds_passed > 0)
    return fmt::format("{:.1f}%", static_cast<double>(ns) / 1e7 / seconds_passed);
  return seconds(static_cast<double>(ns) / 1e9);
}

// A column for each cause that any pod has.
std::vector<std::string> causes_of(const std::vector<PodLine>& lines) {
  std::vector<std::string> causes;
  for (const PodLine& line : lines)
    for (const auto& [cause, ns] : line.waits)
      if (ns > 0 && std::find(causes.begin(), causes.end(), cause) == causes.end())
        causes.push_back(cause);
  const auto place = [](const std::string& cause) {
    return std::find(kCpuWaitCauseNames.begin(), kCpuWaitCauseNames.end(), cause);
  };
  std::stable_sort(causes.begin(), causes.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return causes;
}

Row titles_of(std::initializer_list<std::string_view> names) {
  Row row;
  for (const std::string_view name : names)
    row.push_back({std::string(name), Colour::kBold});
  return row;
}

std::string cpu_table(const Status& now, const Status* before, double seconds_passed,
                      const Screen& screen) {
  const std::vector<PodLine> lines = longest_waits(now, before);
  if (lines.empty()) return "no pod waited for a CPU\n";
  const std::vector<std::string> causes = causes_of(lines);
  std::vector<Row> rows{titles_of({"WAITED FOR CPU", before ? "OF THE TIME" : "TIME"})};
  for (const std::string& cause : causes)
    rows.front().push_back({printable(cause), Colour::kBold});
  for (const PodLine& line : lines) {
    Row& row = rows.emplace_back();
    row.push_back({printable(line.pod->pod_namespace + "/" + line.pod->name)});
    row.push_back({wait_text(line.sum, seconds_passed)});
    for (const std::string& cause : causes) {
      const auto found = std::find_if(line.waits.begin(), line.waits.end(),
                                      [&](const auto& each) { return each.first == cause; });
      const std::int64_t ns = found == line.waits.end() ? 0 : found->second;
      row.push_back({wait_text(ns, seconds_passed),
                     ns > 0 && is_the_nodes(cause) ? Colour::kYellow : Colour::kNone});
    }
  }
  return table(rows, 1, screen);
}

std::string pairs_table(std::string_view title, std::string_view meanwhile,
                        const std::vector<WaitPairStatus>& pairs, const Screen& screen) {
  if (pairs.empty()) return "";
  std::vector<Row> rows{titles_of({title, meanwhile, "RECENTLY"})};
  for (std::size_t i = 0; i < std::min(kMaxPairs, pairs.size()); ++i)
    rows.push_back({{printable(pairs[i].waiter)},
                    {pairs[i].holder.empty() ? "(outside pods)" : printable(pairs[i].holder)},
                    {wait_text(pairs[i].ns, 0)}});
  return "\n" + table(rows, 2, screen);
}

// "node contention: cpu 12.0%, memory 0.0%": what no pod's own limit explains.
std::string contention_line(const Status& status) {
  std::string text;
  for (const auto& [signal, resource] :
       {std::pair{"cpu.pressure", "cpu"}, {"memory.pressure", "memory"}})
    for (const SignalStatus& each : status.signals)
      if (each.signal == signal && each.available && each.capacity.value_or(0) > 0)
        text += fmt::format(
            "{}{} {:.1f}%", text.empty() ? "" : ", ", resource,
            100 - 100 * static_cast<double>(*each.available) / static_cast<double>(*each.capacity));
  return "node contention: " + (text.empty() ? "unknown" : text) + "\n";
}

// What --json prints: each pod's waits, and the node's part.
std::string waits_json(const std::string& document) {
  const Json status = Json::parse(document);
  Json pods = Json::array();
  for (const Json& pod : status.at("pods"))
    pods.push_back({{"namespace", pod.at("namespace")},
                    {"name", pod.at("name")},
                    {"uid", pod.at("uid")},
                    {"cpu_waits", pod.value("cpu_waits", Json(nullptr))},
                    {"stalls", pod.value("stalls", Json::object())}});
  const Json shown{{"at_ns", status.at("at_ns")},
                   {"signals", status.at("signals")},
                   {"node", status.at("waits")},
                   {"pods", std::move(pods)}};
  return to_json_text(shown) + "\n";
}

Result<double> parse_seconds(const std::string& length) {
  if (length.empty()) return 0.0;
  const auto parsed = parse_go_duration(length);
  if (!parsed || *parsed < std::chrono::seconds(1))
    return failure("--for " + length + ": expected at least one second, such as 30s or 5m");
  return seconds_of(*parsed);
}

int run_waits(const WaitsOptions& options) {
  const auto length = parse_seconds(options.length);
  if (!length) {
    print_error(length.error());
    return kUsage;
  }
  const auto document = fetch_status();
  if (!document) return print_error(document.error());
  if (options.json) return std::fputs(waits_json(*document).c_str(), stdout) < 0 ? kFailed : 0;
  const auto first = parse_status(*document);
  if (!first) return print_error(first.error());
  if (*length <= 0) {
    std::fputs(render_waits(*first, nullptr, 0, screen_of_stdout()).c_str(), stdout);
    return 0;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(*length));
  const auto later = fetch_status();
  if (!later) return print_error(later.error());
  const auto second = parse_status(*later);
  if (!second) return print_error(second.error());
  std::fputs(render_waits(*second, &*first, *length, screen_of_stdout()).c_str(), stdout);
  return 0;
}

}  // namespace

std::string render_waits(const Status& now, const Status* before, double seconds,
                         const Screen& screen) {
  std::string text = contention_line(now) + "\n" + cpu_table(now, before, seconds, screen);
  text += pairs_table("WAITED FOR CPU", "WHILE THIS RAN", now.cpu_pairs, screen);
  if (const std::string memory = top_waiters_table(now, screen); !memory.empty())
    text += "\n" + memory;
  text += pairs_table("WAITED FOR MEMORY", "WHILE THIS TOOK MEMORY", now.memory_pairs, screen);
  return text;
}

void add_waits(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<WaitsOptions>();
  auto* waits = app.add_subcommand("waits", "What pods waited for, by cause, and on which pods");
  waits->group(kInspectGroup);
  waits->add_option("--for", options->length,
                    "Watch for so long (30s, 5m) and print shares of that time");
  waits->add_flag("--json", options->json, "As JSON: the totals of each pod");
  waits->callback([&chosen, options] { chosen = [options] { return run_waits(*options); }; });
}

}  // namespace headroom::ctl
