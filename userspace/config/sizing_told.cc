// SPDX-License-Identifier: Apache-2.0
#include "config/sizing_told.h"

#include "config/flag_values.h"
#include "judge/go_duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 1> kSwapKeys{"swapBehavior"};

// One field after the other, each with its place.
class Reading {
 public:
  Reading(const std::string& file, SizingTold& told) : file_(file), told_(told) {}

  template <class T, class U>
  void take(const Section& section, std::string_view key, std::optional<T> read, U& value) {
    if (!read) return;
    value = std::move(*read);
    told_.places[section.path_of(key)] = {file_, section.line_of(key)};
  }

 private:
  const std::string& file_;
  SizingTold& told_;
};

// That it is a map, whoever reads the gates of the CPU manager says.
std::optional<Section> gates_of(const Section& document) {
  const auto entries = document.entries();
  const bool readable = std::ranges::any_of(entries, [](const yaml::Entry& entry) {
    return entry.key == "featureGates" && entry.value.is_map();
  });
  return readable ? document.map("featureGates") : std::nullopt;
}

template <class T>
std::optional<T> whole(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void apply_period(const CommandLine& line, SizingTold& told, Complaints& complaints) {
  static const std::string kFlag = "--cpu-cfs-quota-period";
  if (line.cpu_cfs_quota_period.empty()) return;
  const auto period = parse_go_duration(line.cpu_cfs_quota_period.back());
  if (!period) return complaints.push_back({kFlag, 0, period.error().what});
  told.values.cpu_period = *period;
  told.places["cpuCFSQuotaPeriod"] = {kFlag, 0};
}

void apply_pids(const CommandLine& line, SizingTold& told, Complaints& complaints) {
  static const std::string kFlag = "--pod-max-pids";
  if (line.pod_max_pids.empty()) return;
  const std::string& text = line.pod_max_pids.back();
  const auto most = whole<std::int64_t>(text);
  if (!most)
    return complaints.push_back({kFlag, 0, "expected a whole number, found \"" + text + "\""});
  told.values.pids_limit = *most;
}

Complaint complaint_of(const SettingError& error, const SizingTold& told) {
  const auto place = told.places.find(error.field);
  std::string what = error.field + ": " + error.what;
  if (place == told.places.end()) return {"", 0, std::move(what)};
  return {place->second.file, place->second.line, std::move(what)};
}

}  // namespace

void read_sizing(const Section& document, const std::string& file, SizingTold& told) {
  PodSizingTold& values = told.values;
  Reading reading(file, told);
  const auto flag = [&](const Section& section, std::string_view key, bool& value) {
    reading.take(section, key, section.boolean(key), value);
  };
  const auto word = [&](const Section& section, std::string_view key, std::string& value) {
    reading.take(section, key, section.string(key), value);
  };
  flag(document, "cpuCFSQuota", values.cpu_quota);
  flag(document, "singleProcessOOMKill", values.single_process_oom_kill);
  reading.take(document, "cpuCFSQuotaPeriod", document.duration("cpuCFSQuotaPeriod"),
               values.cpu_period);
  reading.take(document, "podPidsLimit", document.integer("podPidsLimit"), values.pids_limit);
  reading.take(document, "memoryThrottlingFactor", document.number("memoryThrottlingFactor"),
               values.throttling_factor);
  word(document, "memoryReservationPolicy", values.reservation_policy);
  if (const auto swap = document.map("memorySwap")) {
    swap->expect_only(kSwapKeys);
    word(*swap, "swapBehavior", values.swap_behavior);
  }
  if (const auto gates = gates_of(document)) {
    flag(*gates, "MemoryQoS", values.memory_qos_gate);
    flag(*gates, "CustomCPUCFSQuotaPeriod", values.custom_period_gate);
  }
}

void apply_sizing_flags(const CommandLine& line, SizingTold& told, Complaints& complaints) {
  if (const auto quota = switch_of(line.cpu_cfs_quota, "--cpu-cfs-quota", complaints))
    told.values.cpu_quota = *quota;
  apply_period(line, told, complaints);
  apply_pids(line, told, complaints);
}

void settle_sizing(const SizingTold& told, Config& config, Complaints& complaints) {
  const WeightFormula weights = config.slices.weights;
  config.sizing.weights = weights;
  const auto sizing = pod_sizing(told.values, weights);
  if (sizing) {
    config.sizing = *sizing;
  } else if (!config.beside_kubelet) {
    for (const SettingError& error : sizing.error())
      complaints.push_back(complaint_of(error, told));
  }
}

}  // namespace headroom::config
