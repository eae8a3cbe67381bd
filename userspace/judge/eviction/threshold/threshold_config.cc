// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/threshold/threshold_config.h"

#include "judge/eviction/threshold/threshold.h"
#include "judge/resources/go_duration.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headroom {
namespace {

constexpr std::string_view kHard = "evictionHard";
constexpr std::string_view kSoft = "evictionSoft";
constexpr std::string_view kSoftGrace = "evictionSoftGracePeriod";
constexpr std::string_view kMinReclaim = "evictionMinimumReclaim";

constexpr std::string_view kValidValue =
    "write a quantity such as 100Mi or a percentage such as 10%";
constexpr std::string_view kValidGrace = "write a duration such as 1m30s";

template <class T>
using BySignal = std::array<std::optional<T>, kSignals>;

std::string valid_signals() {
  std::string text = "the signals are";
  for (const std::string_view each : kSignalNames)
    if (parse_signal(each)) text.append(text.ends_with("are") ? " " : ", ").append(each);
  return text;
}

class Errors {
 public:
  void add(std::string_view map, std::string_view key, std::string_view what,
           std::string_view right) {
    all_.push_back(
        {std::string(map), std::string(key), std::string(what).append("; ").append(right)});
  }
  bool empty() const { return all_.empty(); }
  std::vector<ThresholdError> take() { return std::move(all_); }

 private:
  std::vector<ThresholdError> all_;
};

// Reads one map with `parse(signal, text) → Result<T>`; what cannot be read becomes an error.
template <class T, class Parse>
BySignal<T> read(std::string_view map, const StringMap& entries, std::string_view right,
                 Parse parse, Errors& errors) {
  BySignal<T> values;
  for (const auto& [key, text] : entries) {
    const auto signal = parse_signal(key);
    if (!signal) {
      errors.add(map, key, signal.error().what, valid_signals());
      continue;
    }
    if (auto value = parse(*signal, text))
      values[static_cast<std::size_t>(*signal)].emplace(std::move(*value));
    else
      errors.add(map, key, value.error().what, right);
  }
  return values;
}

Result<Duration> parse_grace(Signal, std::string_view text) {
  auto grace = parse_go_duration(text);
  if (!grace || *grace >= Duration::zero()) return grace;
  return failure("invalid eviction grace period specified: " + std::string(text) +
                 ", must be a positive value");
}

// Checks the entries as written, so that a soft threshold whose value or grace is also wrong gets
// all its errors at once. One that was dropped ("0%") needs no grace.
void require_grace(const ThresholdMaps& maps, Errors& errors) {
  for (const auto& [key, text] : maps.soft) {
    const auto signal = signal_named(key);
    if (!signal || maps.soft_grace.contains(key)) continue;
    const auto value = parse_threshold_value(*signal, text);
    if (value && !*value) continue;
    errors.add(kSoft, key, "grace period must be specified for the soft eviction threshold " + key,
               "add " + key + " to evictionSoftGracePeriod, such as 1m30s");
  }
}

StringMap hard_entries(const ThresholdMaps& maps) {
  if (!maps.hard) return default_eviction_hard();
  StringMap entries = *maps.hard;
  // Per signal; the other three maps have no defaults to merge.
  if (maps.merge_defaults) entries.merge(default_eviction_hard());
  return entries;
}

// The pods together must keep as far from their own limit as the node from its memory: same value,
// relative to kubepods where it is a percentage.
void add_allocatable(std::vector<Threshold>& thresholds) {
  const auto configured = thresholds.size();
  for (std::size_t i = 0; i < configured; ++i) {
    Threshold derived = thresholds[i];
    if (derived.signal != Signal::kMemoryAvailable || !derived.hard()) continue;
    derived.signal = Signal::kAllocatableMemoryAvailable;
    thresholds.push_back(std::move(derived));
  }
}

}  // namespace

StringMap default_eviction_hard() {
  return {{"memory.available", "100Mi"},
          {"nodefs.available", "10%"},
          {"nodefs.inodesFree", "5%"},
          {"imagefs.available", "15%"},
          {"imagefs.inodesFree", "5%"}};
}

tl::expected<std::vector<Threshold>, std::vector<ThresholdError>> build_thresholds(
    const ThresholdMaps& maps) {
  Errors errors;
  // Read in upstream's order. A statement that is dropped reads as an absent one.
  using Value = std::optional<ThresholdValue>;
  const auto hard =
      read<Value>(kHard, hard_entries(maps), kValidValue, parse_threshold_value, errors);
  const auto soft = read<Value>(kSoft, maps.soft, kValidValue, parse_threshold_value, errors);
  const auto grace = read<Duration>(kSoftGrace, maps.soft_grace, kValidGrace, parse_grace, errors);
  const auto min_reclaim =
      read<ThresholdValue>(kMinReclaim, maps.min_reclaim, kValidValue, parse_min_reclaim, errors);
  require_grace(maps, errors);
  if (!errors.empty()) return tl::make_unexpected(errors.take());

  std::vector<Threshold> thresholds;
  const auto add = [&](std::size_t i, const std::optional<Value>& value, Duration held) {
    if (value && *value)
      thresholds.push_back({static_cast<Signal>(i), **value, held, min_reclaim[i]});
  };
  for (std::size_t i = 0; i < kSignals; ++i)
    add(i, hard[i], Duration::zero());
  for (std::size_t i = 0; i < kSignals; ++i)
    if (grace[i]) add(i, soft[i], *grace[i]);

  const auto& enforced = maps.enforce_node_allocatable;
  if (std::find(enforced.begin(), enforced.end(), "pods") != enforced.end())
    add_allocatable(thresholds);
  return thresholds;
}

std::optional<Threshold> kernel_mem_threshold(const KernelMemThreshold& settings,
                                              const std::vector<Threshold>& thresholds) {
  constexpr Bytes kDefault = 50_MiB;
  const auto hard = [](ThresholdValue value) {
    return Threshold{.signal = Signal::kKernelMemAvailable,
                     .value = std::move(value),
                     .grace = Duration::zero(),
                     .min_reclaim = std::nullopt};
  };
  if (settings.configured)
    return settings.value ? std::optional(hard(*settings.value)) : std::nullopt;
  for (const Threshold& each : thresholds) {
    if (each.signal != Signal::kMemoryAvailable || !each.hard()) continue;
    const auto* amount = std::get_if<Quantity>(&each.value);
    const std::int64_t bytes =
        amount ? std::min(kDefault.count, amount->value() / 2) : kDefault.count;
    return hard(Quantity::of(bytes, Quantity::Format::kBinarySI));
  }
  return std::nullopt;
}

WithContainerFs with_containerfs(std::vector<Threshold> thresholds, ImageStorage images) {
  WithContainerFs all;
  const auto of_containers = [](const Threshold& each) {
    return each.signal == Signal::kContainerFsAvailable ||
           each.signal == Signal::kContainerFsInodesFree;
  };
  all.overwritten = std::erase_if(thresholds, of_containers) > 0;
  const bool as_images = images.dedicated && !images.split;
  const Signal bytes = as_images ? Signal::kImageFsAvailable : Signal::kNodeFsAvailable;
  const Signal inodes = as_images ? Signal::kImageFsInodesFree : Signal::kNodeFsInodesFree;
  const std::size_t configured_count = thresholds.size();
  for (std::size_t i = 0; i < configured_count; ++i) {
    if (thresholds[i].signal != bytes && thresholds[i].signal != inodes) continue;
    Threshold copy = thresholds[i];
    copy.signal =
        copy.signal == bytes ? Signal::kContainerFsAvailable : Signal::kContainerFsInodesFree;
    thresholds.push_back(std::move(copy));
  }
  all.thresholds = std::move(thresholds);
  return all;
}

}  // namespace headroom
