// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"
#include "judge/eviction/threshold/threshold.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace headroom::config {
namespace {

constexpr auto kHeadroomKeys = std::to_array<std::string_view>({
    "mode",         "listen",
    "hostNames",    "podManifests",
    "auditLog",     "stateDirectory",
    "podsCgroup",   "compatibilityMetrics",
    "metrics",      "logLevel",
    "hardGrace",    "fastestFill",
    "checkFloor",   "checkCeiling",
    "sweepPeriod",  "selfCheckPeriod",
    "cpuBudget",    "bpf",
    "nodeName",     "nodeLabels",
    "nodeStatus",   "disk",
    "reclaim",      "slices",
    "evictionUnit", "evictStaticPods",
    "swapAware",    "kernelMemAvailable",
    "oomScoreAdj",  "cpus",
    "pressure",     "kubernetes",
    "ladder",       "thrashAware",
    "podLimits",    "coldMemory",
    "cpuBurst",     "cpuSuppress",
    "podSwap",
});

constexpr std::array<Choice<Mode>, 2> kModes{
    {{"observe", Mode::kObserve}, {"enforce", Mode::kEnforce}}};
constexpr std::array<Choice<SlicesMode>, 3> kSlicesModes{{{"off", SlicesMode::kOff},
                                                          {"observe", SlicesMode::kObserve},
                                                          {"enforce", SlicesMode::kEnforce}}};
constexpr auto kSlicesKeys = std::to_array<std::string_view>({"mode", "persistent", "weights"});
constexpr auto kMetricsKeys = std::to_array<std::string_view>({"oldNames", "cgroups", "exclude"});
constexpr std::array<Choice<MetricScope>, 3> kMetricScopes{
    {{"pods", MetricScope::kPods},
     {"containers", MetricScope::kContainers},
     {"all", MetricScope::kAll}}};
constexpr std::array<Choice<WeightFormula>, 2> kWeights{
    {{"linear", WeightFormula::kLinear}, {"quadratic", WeightFormula::kQuadratic}}};
constexpr std::array<Choice<BpfUse>, 3> kBpfUses{
    {{"all", BpfUse::kAll}, {"events", BpfUse::kEvents}, {"none", BpfUse::kNone}}};
constexpr std::array<Choice<bool>, 2> kStaticPods{{{"never", false}, {"culprit", true}}};
constexpr std::array<Choice<EvictionUnit>, 3> kUnits{{{"pod", EvictionUnit::kPod},
                                                      {"container", EvictionUnit::kContainer},
                                                      {"process", EvictionUnit::kProcess}}};
constexpr std::array<Choice<bool>, 2> kOomScores{{{"leave", false}, {"mirror", true}}};
constexpr std::array<Choice<std::string_view>, 4> kLogLevels{
    {{"debug", "debug"}, {"info", "info"}, {"warning", "warning"}, {"error", "error"}}};

void read_pods_cgroup(const Section& section, const std::string& file, ReservedSettings& reserves) {
  auto configured = read_located_string(section, file, "podsCgroup");
  if (!configured) return;
  std::string& text = configured->strings.front().text;
  std::string_view path = text;
  while (path.starts_with("/"))
    path.remove_prefix(1);
  while (path.ends_with("/"))
    path.remove_suffix(1);
  const bool is_unsafe_component =
      ("/" + std::string(path) + "/").find("/../") != std::string::npos;
  if (path.empty() || is_unsafe_component)
    return section.add_error(
        "podsCgroup",
        "expected a cgroup below the root, such as kubepods.slice, found \"" + text + "\"");
  text = std::string(path);
  reserves.pods_cgroup = std::move(configured);
}

// YAML reads an unquoted off as a boolean; here it means the word.
bool is_off(const Section& slices) {
  return std::any_of(
      slices.entries().begin(), slices.entries().end(), [](const yaml::Entry& entry) {
        return entry.key == "mode" && is_boolean(entry.value) && entry.value.text == "off";
      });
}

void read_slices(const Section& headroom, const std::string& file, Config& config,
                 ReservedSettings& reserves) {
  const auto section = headroom.map("slices");
  if (!section) return;
  section->reject_unknown_keys(kSlicesKeys);
  if (!is_off(*section)) {
    if (const auto mode = section->choice<SlicesMode>("mode", kSlicesModes))
      config.slices.mode = *mode;
    reserves.slices_mode = LocatedValue{file, section->line_of("mode"), {}, {}};
  }
  if (const auto persistent = section->boolean("persistent"))
    config.slices.persistent = *persistent;
  if (const auto weights = section->choice<WeightFormula>("weights", kWeights))
    config.slices.weights = *weights;
}

void read_metrics(const Section& headroom, Config& config) {
  const auto section = headroom.map("metrics");
  if (!section) return;
  section->reject_unknown_keys(kMetricsKeys);
  if (const auto wanted = section->boolean("oldNames")) config.metrics.old_names = *wanted;
  if (const auto scope = section->choice<MetricScope>("cgroups", kMetricScopes))
    config.metrics.cgroups = *scope;
  const auto names = section->list_of_strings("exclude");
  if (!names) return;
  config.metrics.exclude.clear();
  for (const LocatedText& name : *names) {
    constexpr std::string_view kCharacters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:*?";
    if (name.text.empty() || name.text.find_first_not_of(kCharacters) != std::string::npos)
      section->add_error(
          "exclude",
          "expected the name of a metric, which may have * and ?, found \"" + name.text + "\"");
    config.metrics.exclude.push_back(name.text);
  }
}

void read_host_names(const Section& section, Config& config) {
  const auto names = section.list_of_strings("hostNames");
  if (!names) return;
  for (const LocatedText& name : *names) {
    const bool plain = !name.text.empty() && name.text.find_first_of(":/ []") == std::string::npos;
    if (!plain) section.add_error("hostNames", "want names without a port, not " + name.text);
    config.host_names.push_back(name.text);
  }
}

void read_endpoints(const Section& section, Config& config) {
  read_host_names(section, config);
  read_listen(section, config.listen);
  read_absolute_path(section, "podManifests", config.pod_manifests);
  read_absolute_path(section, "auditLog", config.audit_log);
  read_absolute_path(section, "stateDirectory", config.state_dir);
  if (const auto wanted = section.boolean("compatibilityMetrics"))
    config.compatibility_metrics = *wanted;
  read_metrics(section, config);
  if (const auto level = section.choice<std::string_view>("logLevel", kLogLevels))
    config.log_level = *level;
}

void read_hard_grace(const Section& section, Policy& policy) {
  const auto grace = section.duration("hardGrace");
  if (!grace) return;
  if (*grace >= Duration::zero())
    policy.hard_grace = *grace;
  else
    section.add_error("hardGrace", "must not be negative");
}

void read_check_settings(const Section& section, Config& config) {
  Policy& policy = config.policy;
  if (const auto fill = section.quantity("fastestFill")) {
    config.fastest_fill_configured = true;
    if (fill->sign() > 0)
      policy.fastest_fill = fill->value();
    else
      section.add_error("fastestFill", "must be more than zero bytes per second");
  }
  read_positive_duration(section, "checkFloor", policy.check_floor);
  read_positive_duration(section, "checkCeiling", policy.check_ceiling);
  read_positive_duration(section, "sweepPeriod", policy.sweep_period);
  read_positive_duration(section, "selfCheckPeriod", config.self_check_period);
  if (const auto share = read_percentage(section, "cpuBudget", "10%")) config.cpu_budget = *share;
  if (const auto use = section.choice<BpfUse>("bpf", kBpfUses)) config.bpf = *use;
  // Either may be the default; the complaint points at one the file has.
  if (policy.check_floor > policy.check_ceiling)
    section.add_error(section.has("checkFloor") ? "checkFloor" : "checkCeiling",
                      "checkFloor must not exceed checkCeiling");
}

}  // namespace

std::span<const std::string_view> headroom_keys() {
  return kHeadroomKeys;
}

std::span<const std::string_view> metrics_keys() {
  return kMetricsKeys;
}

std::span<const std::string_view> slices_keys() {
  return kSlicesKeys;
}

void read_listen(const Section& section, std::string& listen) {
  const auto text = section.string("listen");
  if (!text) return;
  if (const auto error_text = listen_error(*text))
    section.add_error("listen", *error_text);
  else
    listen = *text;
}

std::optional<std::string> listen_error(std::string_view listen) {
  if (listen.empty()) return std::nullopt;  // off
  const std::size_t colon = listen.rfind(':');
  const std::string_view host = listen.substr(0, colon);
  bool valid = colon != std::string_view::npos && !host.empty();
  // A bare IPv6 address would lose its last group to the port.
  if (valid && host.find(':') != std::string_view::npos)
    valid = host.starts_with("[") && host.ends_with("]");
  if (valid) {
    const std::string_view port = listen.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    valid = error == std::errc() && end == port.data() + port.size();
  }
  if (valid) return std::nullopt;
  return "expected HOST:PORT such as 127.0.0.1:9750, or nothing for no endpoint, found \"" +
         std::string(listen) + "\"";
}

namespace {

void read_kernel_mem_available(const Section& section, KernelMemThreshold& threshold) {
  const auto text = section.string("kernelMemAvailable");
  if (!text) return;
  auto value = parse_threshold_value(Signal::kKernelMemAvailable, *text);
  if (!value)
    return section.add_error(
        "kernelMemAvailable",
        value.error().what + "; write a quantity such as 50Mi, a percentage such as 2%, or 0%");
  threshold = {.configured = true, .value = std::move(*value)};
}

}  // namespace

std::optional<Mode> parse_mode(std::string_view word) {
  for (const auto& choice : kModes)
    if (choice.word == word) return choice.value;
  return std::nullopt;
}

void read_headroom(const Section& section, const std::string& file, Config& config,
                   ReservedSettings& reserves) {
  section.reject_unknown_keys(kHeadroomKeys);
  if (const auto mode = section.choice<Mode>("mode", kModes)) config.policy.mode = *mode;
  read_endpoints(section, config);
  read_hard_grace(section, config.policy);
  read_check_settings(section, config);
  read_node_identity(section, config);
  read_pods_cgroup(section, file, reserves);
  read_slices(section, file, config, reserves);
  read_disk(section, config);
  read_reclaim(section, config);
  if (const auto culprits = section.choice<bool>("evictStaticPods", kStaticPods))
    config.policy.evict_static_culprits = *culprits;
  if (const auto aware = section.boolean("swapAware")) config.policy.swap_aware = *aware;
  if (const auto aware = section.boolean("thrashAware")) config.thrash_aware = *aware;
  read_kernel_mem_available(section, config.kernel_mem_available);
  if (const auto mirror = section.choice<bool>("oomScoreAdj", kOomScores))
    config.mirror_oom_scores = *mirror;
  if (const auto unit = section.choice<EvictionUnit>("evictionUnit", kUnits))
    config.policy.eviction_unit = *unit;
  read_pressure(section, config);
  read_kubernetes(section, config);
  read_ladder(section, config.policy);
  read_pod_memory(section, config);
  read_cpu_burst(section, config);
  read_cpu_suppress(section, config);
  read_pod_swap(section, config);
}

}  // namespace headroom::config
