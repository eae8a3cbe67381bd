// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"
#include "config/yaml/section.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/resources/go_duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace headroom::config {
namespace {

using Mode = CpusConfig::Mode;
using Policy = CpusConfig::Policy;
using Partition = CpusConfig::Partition;

constexpr auto kHeadroomKeys = std::to_array<std::string_view>(
    {"mode", "stateFile", "memoryStateFile", "excludeIsolated", "partition", "guardSharedPool"});
constexpr std::array<Choice<Mode>, 3> kModes{
    {{"off", Mode::kOff}, {"observe", Mode::kObserve}, {"enforce", Mode::kEnforce}}};
constexpr std::array<Choice<Policy>, 2> kPolicies{
    {{"none", Policy::kNone}, {"static", Policy::kStatic}}};
constexpr std::array<Choice<Partition>, 2> kPartitions{
    {{"member", Partition::kMember}, {"isolated", Partition::kIsolated}}};
constexpr std::array<Choice<TopologyPolicy>, 4> kTopologyPolicies{
    {{"none", TopologyPolicy::kNone},
     {"best-effort", TopologyPolicy::kBestEffort},
     {"restricted", TopologyPolicy::kRestricted},
     {"single-numa-node", TopologyPolicy::kSingleNumaNode}}};
constexpr std::array<Choice<TopologyScope>, 2> kScopes{
    {{"container", TopologyScope::kContainer}, {"pod", TopologyScope::kPod}}};
constexpr auto kOptions = std::to_array<std::string_view>(
    {"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket",
     "distribute-cpus-across-cores", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"});
constexpr std::string_view kPreferClosestNumaNodes = "prefer-closest-numa-nodes",
                           kMaxAllowableNumaNodes = "max-allowable-numa-nodes";
constexpr std::string_view kPodLevelManagers = "PodLevelResourceManagers";  // alpha in 1.36
constexpr auto kTopologyOptions =
    std::to_array<std::string_view>({kPreferClosestNumaNodes, kMaxAllowableNumaNodes});

void read_map(const Section& document, const std::string& file, std::string_view key,
              LocatedOptions& settings) {
  if (auto strings = document.map_of_strings(key))
    settings = {file, document.line_of(key), std::move(*strings)};
}

// A word of few, and where it stands.
template <class T, std::size_t N>
void read_choice(const Section& section, const std::string& file, std::string_view key,
                 const std::array<Choice<T>, N>& choices, T& value,
                 LocatedOptions* settings = nullptr) {
  const auto chosen = section.choice<T>(key, choices);
  if (!chosen) return;
  value = *chosen;
  if (settings) *settings = {file, section.line_of(key), {}};
}

// YAML reads an unquoted off as a boolean; here it means the word.
bool is_off(const Section& section) {
  return std::ranges::any_of(section.entries(), [](const yaml::Entry& entry) {
    return entry.key == "mode" && is_boolean(entry.value) && entry.value.text == "off";
  });
}

// Errors in it are reported by the code that reads the reservations.
void read_reserved(const Section& document, CpusConfig& cpus) {
  for (const yaml::Entry& entry : document.entries())
    if (entry.key == "reservedSystemCPUs" && entry.value.is_scalar() && !entry.value.text.empty())
      if (auto set = CpuSet::parse(entry.value.text)) cpus.reserved = std::move(*set);
}

void read_gates(const Section& document, CpusConfig& cpus, CpusSettings& settings) {
  const auto gates = document.map("featureGates");
  if (!gates) return;
  if (const auto on = gates->boolean("CPUManagerPolicyAlphaOptions")) settings.gates.alpha = *on;
  if (const auto on = gates->boolean("CPUManagerPolicyBetaOptions")) settings.gates.beta = *on;
  if (const auto on = gates->boolean(kPodLevelManagers)) cpus.pod_level_managers = *on;
  if (cpus.pod_level_managers && !gates->boolean("PodLevelResources").value_or(true))
    gates->add_error(kPodLevelManagers,
                     "requires the gate PodLevelResources, which is set to false");
}

// --- flags -----------------------------------------------------------------------------------

template <class T, std::size_t N>
void apply_choice(const CommandLine::FlagValues& values, const std::string& flag,
                  const std::array<Choice<T>, N>& choices, T& value, LocatedOptions* settings,
                  Diagnostics& diagnostics) {
  if (values.empty()) return;
  std::string expected;
  for (const Choice<T>& choice : choices) {
    expected.append(expected.empty() ? "" : ", ").append(choice.word);
    if (choice.word != values.back()) continue;
    value = choice.value;
    if (settings) *settings = {flag, 0, {}};
    return;
  }
  diagnostics.push_back(
      {flag, 0, "expected one of " + expected + ", found \"" + values.back() + '"'});
}

void apply_options(const CommandLine::FlagValues& values, const std::string& flag,
                   LocatedOptions& settings, Diagnostics& diagnostics) {
  if (values.empty()) return;
  settings = {flag, 0, {}};
  for (const std::string& value : values)
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view pair = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const std::size_t sign = pair.find('=');
      if (sign == std::string_view::npos)
        diagnostics.push_back({flag, 0, '"' + std::string(pair) + "\": expected option=value"});
      else
        settings.strings.push_back(
            {std::string(pair.substr(0, sign)), std::string(pair.substr(sign + 1)), 0});
    }
}

// --- checks of several keys together ---------------------------------------------------------

class Resolver {
 public:
  Resolver(const CpusSettings& settings, Config& config, Diagnostics& diagnostics)
      : settings_(settings), config_(config), cpus_(config.cpus), complaints_(diagnostics) {}

  void options() {
    const LocatedOptions& settings = settings_.options;
    if (cpus_.policy == Policy::kNone && !settings.strings.empty())
      return add_error(settings,
                       "cpuManagerPolicyOptions: the policy none takes no options: set "
                       "cpuManagerPolicy: static, or take them out");
    std::map<std::string, std::string> valid_options;
    for (const LocatedText& word : settings.strings) {
      const auto parsed = parse_cpu_options({{word.key, word.text}}, settings_.gates);
      if (parsed)
        valid_options.emplace(word.key, word.text);
      else
        for (const std::string& what : parsed.error())
          add_error(settings, "cpuManagerPolicyOptions: " + what + feature_gate_hint(word.key),
                    word.line);
    }
    if (const auto parsed = parse_cpu_options(valid_options, settings_.gates))
      cpus_.options = *parsed;
  }

  void topology_options() {
    for (const LocatedText& word : settings_.topology_options.strings) {
      if (word.key == kPreferClosestNumaNodes) {
        const auto on = boolean(word.text);
        if (on)
          cpus_.prefer_closest_numa = *on;
        else
          complain_about_topology(word, "expected \"true\" or \"false\"");
      } else if (word.key == kMaxAllowableNumaNodes) {
        if (!is_at_least_eight(word.text))
          complain_about_topology(word, "expected a number, 8 or more");
      } else {
        add_error(settings_.topology_options,
                  "unknown option topologyManagerPolicyOptions." + word.key +
                      did_you_mean(word.key, kTopologyOptions),
                  word.line);
      }
    }
  }

  // What any machine would object to; this one's own objections are the daemon's to find.
  void check_combinations() {
    const TopologyRules rules{cpus_.topology_policy, cpus_.topology_scope, false};
    const auto any_machine = Topology::of({CpuLocation{}});
    for (const std::string& what : conflicts(cpus_.options, *any_machine, rules))
      add_error(settings_.options, "cpuManagerPolicyOptions: " + what + ": take one of them out");
  }

  void reservation() {
    if (cpus_.mode == Mode::kOff || cpus_.policy == Policy::kNone || cpus_.reserved) return;
    const auto of = [](const Reserve& reserve) {
      return reserve.amounts.cpu ? reserve.amounts.cpu->count : 0;
    };
    if (of(config_.reserved.kube) + of(config_.reserved.system) > 0) return;
    add_error(settings_.policy.file.empty() ? settings_.mode : settings_.policy,
              "cpuManagerPolicy: the static policy needs CPUs that are reserved: set "
              "reservedSystemCPUs, or cpu in systemReserved or kubeReserved");
  }

 private:
  void add_error(const LocatedOptions& where, const std::string& what, int line = 0) {
    complaints_.push_back({where.file, line == 0 ? where.line : line, what});
  }
  void complain_about_topology(const LocatedText& word, const std::string& what) {
    add_error(
        settings_.topology_options,
        "topologyManagerPolicyOptions." + word.key + ": " + what + ", found \"" + word.text + '"',
        word.line);
  }

  std::string feature_gate_hint(const std::string& option) const {
    if (std::ranges::find(kOptions, option) == kOptions.end())
      return did_you_mean(option, kOptions);
    if (parse_cpu_options({{option, "true"}}, settings_.gates))
      return ": expected \"true\" or \"false\"";
    const bool alpha = !parse_cpu_options({{option, "true"}}, {.alpha = false, .beta = true});
    return std::string(": set featureGates.CPUManagerPolicy") + (alpha ? "Alpha" : "Beta") +
           "Options: true";
  }

  static std::optional<bool> boolean(const std::string& text) {
    const auto parsed = parse_cpu_options({{"full-pcpus-only", text}});
    if (!parsed) return std::nullopt;
    return parsed->full_pcpus_only;
  }
  static bool is_at_least_eight(const std::string& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 8;
  }

  const CpusSettings& settings_;
  Config& config_;
  CpusConfig& cpus_;
  Diagnostics& complaints_;
};

}  // namespace

void read_cpus(const Section& document, const std::string& file, Config& config,
               CpusSettings& settings) {
  CpusConfig& cpus = config.cpus;
  read_choice(document, file, "cpuManagerPolicy", kPolicies, cpus.policy, &settings.policy);
  read_map(document, file, "cpuManagerPolicyOptions", settings.options);
  read_choice(document, file, "topologyManagerPolicy", kTopologyPolicies, cpus.topology_policy,
              &settings.topology_policy);
  read_choice(document, file, "topologyManagerScope", kScopes, cpus.topology_scope);
  read_map(document, file, "topologyManagerPolicyOptions", settings.topology_options);
  read_gates(document, cpus, settings);
  read_reserved(document, cpus);
  if (const auto period = document.duration("cpuManagerReconcilePeriod")) {
    if (*period < Duration::zero())
      document.add_error("cpuManagerReconcilePeriod", "must not be negative");
    // The kubelet does not distinguish zero from unset.
    else if (*period > Duration::zero())
      cpus.reconcile_period = *period;
  }
}

std::span<const std::string_view> headroom_cpus_keys() {
  return kHeadroomKeys;
}

void read_headroom_cpus(const Section& headroom, const std::string& file, Config& config,
                        CpusSettings& settings) {
  const auto section = headroom.map("cpus");
  if (!section) return;
  section->reject_unknown_keys(kHeadroomKeys);
  if (!is_off(*section))
    read_choice(*section, file, "mode", kModes, config.cpus.mode, &settings.mode);
  read_absolute_path(*section, "stateFile", config.cpus.state_file);
  read_absolute_path(*section, "memoryStateFile", config.cpus.memory_state_file);
  if (const auto exclude = section->boolean("excludeIsolated"))
    config.cpus.exclude_isolated = *exclude;
  read_choice(*section, file, "partition", kPartitions, config.cpus.partition);
  if (const auto guard = section->boolean("guardSharedPool"))
    config.cpus.guard_shared_pool = *guard;
}

void apply_cpu_flags(const CommandLine& line, Config& config, CpusSettings& settings,
                     Diagnostics& diagnostics) {
  CpusConfig& cpus = config.cpus;
  apply_choice(line.cpu_manager_policy, "--cpu-manager-policy", kPolicies, cpus.policy,
               &settings.policy, diagnostics);
  apply_choice(line.topology_manager_policy, "--topology-manager-policy", kTopologyPolicies,
               cpus.topology_policy, &settings.topology_policy, diagnostics);
  apply_choice(line.topology_manager_scope, "--topology-manager-scope", kScopes,
               cpus.topology_scope, nullptr, diagnostics);
  apply_options(line.cpu_manager_policy_options, "--cpu-manager-policy-options", settings.options,
                diagnostics);
  apply_options(line.topology_manager_policy_options, "--topology-manager-policy-options",
                settings.topology_options, diagnostics);
  if (!line.reserved_cpus.empty())
    if (auto set = CpuSet::parse(line.reserved_cpus.back())) cpus.reserved = std::move(*set);
  if (line.cpu_manager_reconcile_period.empty()) return;
  const auto period = parse_go_duration(line.cpu_manager_reconcile_period.back());
  if (period && *period > Duration::zero())
    cpus.reconcile_period = *period;
  else
    diagnostics.push_back({"--cpu-manager-reconcile-period", 0,
                           period ? "must be more than zero" : period.error().what});
}

void resolve_cpu_settings(const CpusSettings& settings, Config& config, Diagnostics& diagnostics) {
  Resolver validator(settings, config, diagnostics);
  validator.options();
  validator.topology_options();
  validator.check_combinations();
  validator.reservation();
}

}  // namespace headroom::config
