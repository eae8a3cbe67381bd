// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/pod_columns.h"

#include "ctl/status/wait_tables.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <unordered_map>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Key = std::optional<double>;

Key key_of(std::optional<std::int64_t> value) {
  return value ? Key(static_cast<double>(*value)) : std::nullopt;
}
std::string rate_text(const Key& rate) {
  return rate ? fmt::format("{:.2f}", *rate) : "-";
}
std::string share_text(const Key& share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : "-";
}
std::string count_text(std::optional<std::int64_t> count) {
  return count ? std::to_string(*count) : "-";
}

Cell state_cell(const PodSample& sample) {
  const PodStatus& pod = *sample.pod;
  Colour colour = Colour::kNone;
  if (pod.state == "terminating" || pod.state == "killed" || pod.state == "timed_out")
    colour = Colour::kRed;
  if (pod.state == "would_evict" || pod.state == "unknown") colour = Colour::kYellow;
  if (pod.state == "critical" || pod.state == "empty") colour = Colour::kDim;
  return {printable(pod.state), colour};
}

Cell over_cell(const PodSample& sample) {
  const auto over = sample.pod->over;
  return {bytes(over), over && *over > 0 ? Colour::kYellow : Colour::kNone};
}

constexpr std::array kColumns{
    PodColumn{"pod", "POD", "namespace and name", true,
              [](const PodSample& each) -> Cell {
                return {printable(each.pod->pod_namespace + "/" + each.pod->name)};
              }},
    PodColumn{"qos", "QOS", "QoS class", true,
              [](const PodSample& each) -> Cell { return {printable(each.pod->qos)}; }},
    PodColumn{"state", "STATE", "running, critical, or a step of its eviction", true, state_cell},
    PodColumn{"order", "ORDER", "place among the pods that would be evicted for memory; 1 is first",
              true,
              [](const PodSample& each) -> Cell { return {count_text(each.pod->eviction_order)}; },
              [](const PodSample& each) -> Key {
                // The first place is the highest key.
                const auto place = each.pod->eviction_order;
                return place ? key_of(-*place) : std::nullopt;
              }},
    PodColumn{"priority", "PRIORITY", "priority", true,
              [](const PodSample& each) -> Cell { return {std::to_string(each.pod->priority)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->priority); }},
    PodColumn{"workingset", "WORKING SET", "memory in use without page cache that is not active",
              true, [](const PodSample& each) -> Cell { return {bytes(each.pod->working_set)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->working_set); }},
    PodColumn{"request", "REQUEST", "requested memory", true,
              [](const PodSample& each) -> Cell { return {bytes(each.pod->request)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->request); }},
    PodColumn{"limit", "LIMIT", "limit of memory", false,
              [](const PodSample& each) -> Cell { return {bytes(each.pod->limit)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->limit); }},
    PodColumn{"over", "OVER", "memory above the request", true, over_cell,
              [](const PodSample& each) -> Key { return key_of(each.pod->over); }},
    PodColumn{"swap", "SWAP", "memory in swap", false,
              [](const PodSample& each) -> Cell { return {bytes(each.pod->swap)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->swap); }},
    PodColumn{"cpus", "CPUS", "CPU seconds used per second", true,
              [](const PodSample& each) -> Cell { return {rate_text(each.rates.cpus)}; },
              [](const PodSample& each) -> Key { return each.rates.cpus; }},
    PodColumn{"memwait", "MEM WAIT", "share of time in which a task waited for memory", true,
              [](const PodSample& each) -> Cell { return {share_text(each.rates.memory_waiting)}; },
              [](const PodSample& each) -> Key { return each.rates.memory_waiting; }},
    PodColumn{"throttled", "THROTTLED", "share of time in which its CPU quota was used up", true,
              [](const PodSample& each) -> Cell { return {share_text(each.rates.throttled)}; },
              [](const PodSample& each) -> Key { return each.rates.throttled; }},
    PodColumn{"burst", "BURST", "CPUs that it may use above its quota (cpuBurst)", false,
              [](const PodSample& each) -> Cell { return {rate_text(each.pod->cpu_burst)}; },
              [](const PodSample& each) -> Key { return each.pod->cpu_burst; }},
    PodColumn{
        "suppressed", "SUPPRESSED", "its CPU time yields to pods with a guarantee (cpuSuppress)",
        false,
        [](const PodSample& each) -> Cell { return {each.pod->cpu_suppressed ? "yes" : "-"}; },
        [](const PodSample& each) -> Key { return each.pod->cpu_suppressed ? 1 : 0; }},
    PodColumn{"stall", "STALL", "main cause of its waits for memory, and their share", true,
              [](const PodSample& each) -> Cell { return {each.rates.stall}; }},
    PodColumn{"disk", "DISK", "logs, writable layers and local volumes", false,
              [](const PodSample& each) -> Cell { return {bytes(each.pod->disk)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->disk); }},
    PodColumn{"tasks", "TASKS", "tasks", false,
              [](const PodSample& each) -> Cell { return {count_text(each.pod->tasks)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->tasks); }},
    PodColumn{"oomkills", "OOM KILLS", "kills by the kernel's OOM killer", false,
              [](const PodSample& each) -> Cell { return {count_text(each.pod->oom_kills)}; },
              [](const PodSample& each) -> Key { return key_of(each.pod->oom_kills); }},
};

// The result is never negative: totals of a cgroup may decrease (utime and stime are scaled).
Key rate(std::optional<std::int64_t> before, std::optional<std::int64_t> now,
         double elapsed_seconds) {
  if (!before || !now || elapsed_seconds <= 0) return std::nullopt;
  return std::max(0.0, static_cast<double>(*now - *before) / 1e9 / elapsed_seconds);
}

double elapsed_between(const Status* before, const Status& now) {
  if (!before || !before->pods_at_ns || !now.pods_at_ns) return 0;
  return static_cast<double>(*now.pods_at_ns - *before->pods_at_ns) / 1e9;
}

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool contains(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace

Rates rates_between(const PodStatus& before, const PodStatus& now, double elapsed_seconds) {
  return {.cpus = rate(before.cpu, now.cpu, elapsed_seconds),
          .throttled = rate(before.throttled, now.throttled, elapsed_seconds),
          .memory_waiting = rate(before.memory_waiting, now.memory_waiting, elapsed_seconds),
          .stall = top_stall_cause(before, now, elapsed_seconds)};
}

std::vector<PodSample> pod_samples(const Status* before, const Status& now) {
  std::unordered_map<std::string_view, const PodStatus*> earlier;
  if (before)
    for (const PodStatus& pod : before->pods)
      earlier.emplace(pod.uid, &pod);
  const double elapsed = elapsed_between(before, now);
  std::vector<PodSample> samples;
  samples.reserve(now.pods.size());
  for (const PodStatus& pod : now.pods) {
    const auto known = earlier.find(pod.uid);
    samples.push_back({.pod = &pod});
    if (known != earlier.end()) samples.back().rates = rates_between(*known->second, pod, elapsed);
  }
  return samples;
}

std::span<const PodColumn> pod_columns() {
  return kColumns;
}

const PodColumn* pod_column(std::string_view name) {
  const auto found = std::find_if(kColumns.begin(), kColumns.end(),
                                  [&](const PodColumn& each) { return each.name == name; });
  return found == kColumns.end() ? nullptr : &*found;
}

TopSettings default_top_settings() {
  TopSettings settings;
  for (const PodColumn& column : kColumns)
    if (column.shown) settings.columns.emplace_back(column.name);
  return settings;
}

std::size_t left_columns(const TopSettings& settings) {
  std::size_t left = 0;
  for (const std::string& name : settings.columns) {
    const PodColumn* const column = pod_column(name);
    if (column && column->key) break;
    ++left;
  }
  return left;
}

Result<std::vector<std::string>> parse_columns(std::string_view text) {
  std::vector<std::string> names{std::string(kColumns[0].name)};
  std::string unknown;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (!pod_column(name)) unknown += fmt::format("{}\"{}\"", unknown.empty() ? "" : ", ", name);
    if (name != names.front()) names.emplace_back(name);
  }
  if (unknown.empty()) return names;
  std::string known;
  for (const PodColumn& column : kColumns)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", column.name);
  return failure("no column " + printable(unknown) + "; the columns are " + known);
}

void sort_pods(std::vector<PodSample>& samples, const TopSettings& settings) {
  const PodColumn* const found = pod_column(settings.sort);
  const PodColumn& column = found ? *found : kColumns[0];
  const auto name_of = [](const PodSample& each) {
    return std::tie(each.pod->pod_namespace, each.pod->name, each.pod->uid);
  };
  const auto by_text = [&](const PodSample& a, const PodSample& b) {
    const std::string of_a = column.cell(a).text, of_b = column.cell(b).text;
    if (of_a != of_b) return settings.reversed ? of_b < of_a : of_a < of_b;
    return name_of(a) < name_of(b);
  };
  // Absent keys are last in both directions.
  const auto by_key = [&](const PodSample& a, const PodSample& b) {
    const Key of_a = column.key(a), of_b = column.key(b);
    if (of_a.has_value() != of_b.has_value()) return of_a.has_value();
    if (of_a != of_b) return settings.reversed ? *of_a < *of_b : *of_a > *of_b;
    return name_of(a) < name_of(b);
  };
  if (column.key)
    std::stable_sort(samples.begin(), samples.end(), by_key);
  else
    std::stable_sort(samples.begin(), samples.end(), by_text);
}

bool matches_filter(const PodStatus& pod, std::string_view filter) {
  const std::string text = pod.pod_namespace + '/' + pod.name + ' ' + pod.qos + ' ' + pod.state;
  while (!filter.empty()) {
    const std::string_view word = filter.substr(0, filter.find(' '));
    filter.remove_prefix(std::min(filter.size(), word.size() + 1));
    if (!contains(text, word)) return false;
  }
  return true;
}

}  // namespace headroom::ctl
