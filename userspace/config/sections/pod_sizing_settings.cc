// SPDX-License-Identifier: Apache-2.0
#include "config/flags/command_line.h"
#include "config/sections/section_settings.h"
#include "judge/resources/go_duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 1> kSwapKeys{"swapBehavior"};

// One field after the other, each with its place.
class SizingReader {
 public:
  SizingReader(const std::string& file, PodSizingSettings& settings)
      : file_(file), settings_(settings) {}

  template <class T, class U>
  void read(const Section& section, std::string_view key, std::optional<T> read, U& value) {
    if (!read) return;
    value = std::move(*read);
    settings_.locations[section.path_of(key)] = {file_, section.line_of(key)};
  }

 private:
  const std::string& file_;
  PodSizingSettings& settings_;
};

// A value that is not a map is reported by the code that reads the gates of the CPU manager.
std::optional<Section> gates_of(const Section& document) {
  const auto entries = document.entries();
  const bool readable = std::ranges::any_of(entries, [](const yaml::Entry& entry) {
    return entry.key == "featureGates" && entry.value.is_map();
  });
  return readable ? document.map("featureGates") : std::nullopt;
}

template <class T>
std::optional<T> parse_integer(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void apply_period(const CommandLine& line, PodSizingSettings& settings, Diagnostics& diagnostics) {
  static const std::string kFlag = "--cpu-cfs-quota-period";
  if (line.cpu_cfs_quota_period.empty()) return;
  const auto period = parse_go_duration(line.cpu_cfs_quota_period.back());
  if (!period) return diagnostics.push_back({kFlag, 0, period.error().what});
  settings.values.cpu_period = *period;
  settings.locations["cpuCFSQuotaPeriod"] = {kFlag, 0};
}

void apply_pids(const CommandLine& line, PodSizingSettings& settings, Diagnostics& diagnostics) {
  static const std::string kFlag = "--pod-max-pids";
  if (line.pod_max_pids.empty()) return;
  const std::string& text = line.pod_max_pids.back();
  const auto limit = parse_integer<std::int64_t>(text);
  if (!limit)
    return diagnostics.push_back({kFlag, 0, "expected a whole number, found \"" + text + "\""});
  settings.values.pids_limit = *limit;
}

Diagnostic diagnostic_of(const SettingError& error, const PodSizingSettings& settings) {
  const auto origin = settings.locations.find(error.field);
  std::string what = error.field + ": " + error.what;
  if (origin == settings.locations.end()) return {"", 0, std::move(what)};
  return {origin->second.file, origin->second.line, std::move(what)};
}

}  // namespace

void read_sizing(const Section& document, const std::string& file, PodSizingSettings& settings,
                 Diagnostics& warnings) {
  PodSizingConfig& values = settings.values;
  SizingReader reader(file, settings);
  const auto flag = [&](const Section& section, std::string_view key, bool& value) {
    reader.read(section, key, section.boolean(key), value);
  };
  const auto word = [&](const Section& section, std::string_view key, std::string& value) {
    reader.read(section, key, section.string(key), value);
  };
  flag(document, "cpuCFSQuota", values.cpu_quota);
  flag(document, "singleProcessOOMKill", values.single_process_oom_kill);
  reader.read(document, "cpuCFSQuotaPeriod", document.duration("cpuCFSQuotaPeriod"),
              values.cpu_period);
  reader.read(document, "podPidsLimit", document.integer("podPidsLimit"), values.pids_limit);
  reader.read(document, "memoryThrottlingFactor", document.number("memoryThrottlingFactor"),
              values.throttling_factor);
  word(document, "memoryReservationPolicy", values.reservation_policy);
  if (const auto swap = document.map("memorySwap")) {
    swap->warn_of_unknown_keys(kSwapKeys, kSwapKeys, warnings);
    word(*swap, "swapBehavior", values.swap_behavior);
  }
  if (const auto gates = gates_of(document)) {
    if (const auto gate = gates->boolean("MemoryQoS")) values.memory_qos_gate = gate;
    flag(*gates, "CustomCPUCFSQuotaPeriod", values.custom_period_gate);
  }
}

void apply_sizing_flags(const CommandLine& line, PodSizingSettings& settings,
                        Diagnostics& diagnostics) {
  if (const auto quota = parse_bool_flag(line.cpu_cfs_quota, "--cpu-cfs-quota", diagnostics))
    settings.values.cpu_quota = *quota;
  apply_period(line, settings, diagnostics);
  apply_pids(line, settings, diagnostics);
}

void resolve_pod_sizing(const PodSizingSettings& settings, Config& config,
                        Diagnostics& diagnostics) {
  const WeightFormula weights = config.slices.weights;
  config.sizing.weights = weights;
  const auto sizing = pod_sizing(settings.values, weights);
  if (sizing) {
    config.sizing = *sizing;
  } else if (!config.kubelet_present) {
    for (const SettingError& error : sizing.error())
      diagnostics.push_back(diagnostic_of(error, settings));
  }
}

}  // namespace headroom::config
