// SPDX-License-Identifier: Apache-2.0
#include "config/flags/command_line.h"

#include "config/yaml/section.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace headroom::config {
namespace {

struct Flag {
  const char* name;
  CommandLine::FlagValues CommandLine::*values;
  const char* type;  // of its value; null: a switch
  const char* help;
};

constexpr Flag kKubeletFlags[] = {
    {"--config", &CommandLine::config, "FILE",
     "KubeletConfiguration with a headroom: section (/etc/headroom/headroom.yaml)"},
    {"--config-dir", &CommandLine::config_dir, "DIR",
     "drop-ins merged into it by name (the file's name and .d)"},
    {"--eviction-hard", &CommandLine::eviction_hard, "SIGNAL<VALUE,...",
     "evict at once below these"},
    {"--eviction-soft", &CommandLine::eviction_soft, "SIGNAL<VALUE,...",
     "evict below these after their grace period"},
    {"--eviction-soft-grace-period", &CommandLine::eviction_soft_grace_period,
     "SIGNAL=DURATION,...", "how long below a soft threshold"},
    {"--eviction-minimum-reclaim", &CommandLine::eviction_minimum_reclaim, "SIGNAL=VALUE,...",
     "once evicting, how far above the threshold to go"},
    {"--eviction-max-pod-grace-period", &CommandLine::eviction_max_pod_grace_period, "SECONDS",
     "longest grace a soft eviction grants; negative: the pod's own"},
    {"--eviction-pressure-transition-period", &CommandLine::eviction_pressure_transition_period,
     "DURATION", "how long a pressure condition outlasts its cause"},
    {"--kernel-memcg-notification", &CommandLine::kernel_memcg_notification, nullptr,
     "taken and of no effect: with cgroup v2 the kubelet's has none either"},
    {"--local-storage-capacity-isolation", &CommandLine::local_storage_isolation, nullptr,
     "evict pods over their limits of local storage (true)"},
    {"--enforce-node-allocatable", &CommandLine::enforce_node_allocatable, "KEY,...",
     "pods, system-reserved, kube-reserved, ... or none"},

    {"--register-with-taints", &CommandLine::register_with_taints, "KEY=VALUE:EFFECT,...",
     "taints the node starts with"},
    {"--node-labels", &CommandLine::node_labels, "KEY=VALUE,...", "labels of the node"},
    {"--hostname-override", &CommandLine::hostname_override, "NAME",
     "the node's name, in place of the host's"},
    {"--max-pods", &CommandLine::max_pods, "NUMBER", "how many pods the node takes (110)"},
    {"--pods-per-core", &CommandLine::pods_per_core, "NUMBER",
     "how many for each CPU; 0: no such limit"},

    {"--cpu-manager-policy", &CommandLine::cpu_manager_policy, "none|static",
     "whether Guaranteed pods get whole CPUs of their own"},
    {"--cpu-manager-policy-options", &CommandLine::cpu_manager_policy_options, "OPTION=BOOLEAN,...",
     "full-pcpus-only, strict-cpu-reservation, ..."},
    {"--cpu-manager-reconcile-period", &CommandLine::cpu_manager_reconcile_period, "DURATION",
     "how often all CPU sets are looked at"},
    {"--topology-manager-policy", &CommandLine::topology_manager_policy, "POLICY",
     "none, best-effort, restricted or single-numa-node"},
    {"--topology-manager-policy-options", &CommandLine::topology_manager_policy_options,
     "OPTION=VALUE,...", "prefer-closest-numa-nodes, max-allowable-numa-nodes"},
    {"--topology-manager-scope", &CommandLine::topology_manager_scope, "container|pod",
     "which resources are aligned together"},
    {"--memory-manager-policy", &CommandLine::memory_manager_policy, "None|Static",
     "whether Guaranteed pods get memory of NUMA nodes of their own"},
    {"--reserved-memory", &CommandLine::reserved_memory, "NODE:NAME=QUANTITY,...;...",
     "what pods do not get of each NUMA node: memory, hugepages-SIZE"},

    {"--kube-reserved", &CommandLine::kube_reserved, "NAME=QUANTITY,...",
     "kept back from pods for the node's services: cpu, memory, ephemeral-storage, pid"},
    {"--system-reserved", &CommandLine::system_reserved, "NAME=QUANTITY,...",
     "the same, for the operating system"},
    {"--kube-reserved-cgroup", &CommandLine::kube_reserved_cgroup, "SLICE",
     "the slice that kube-reserved is enforced on"},
    {"--system-reserved-cgroup", &CommandLine::system_reserved_cgroup, "SLICE",
     "the slice that system-reserved is enforced on"},
    {"--reserved-cpus", &CommandLine::reserved_cpus, "CPUS",
     "reserved CPUs, such as 0-1; replaces the reservation of cpu"},
    {"--qos-reserved", &CommandLine::qos_reserved, "memory=PERCENT%",
     "share of better classes' memory requests that lesser ones may not use"},
    {"--cgroups-per-qos", &CommandLine::cgroups_per_qos, nullptr,
     "a cgroup for all pods and one for each lesser class (true)"},
    {"--cgroup-root", &CommandLine::cgroup_root, "CGROUP", "where the pods' cgroup is made (/)"},
    {"--cgroup-driver", &CommandLine::cgroup_driver, "systemd|cgroupfs", "how cgroups are named"},
    {"--experimental-allocatable-ignore-eviction,"
     "--experimental-node-allocatable-ignore-eviction-threshold",
     &CommandLine::ignore_eviction_threshold, nullptr,
     "do not take hard eviction thresholds off what pods may have"},

    {"--cpu-cfs-quota", &CommandLine::cpu_cfs_quota, nullptr,
     "hold containers to their CPU limits by quota (true)"},
    {"--cpu-cfs-quota-period", &CommandLine::cpu_cfs_quota_period, "DURATION",
     "the period of that quota (100ms)"},
    {"--pod-max-pids", &CommandLine::pod_max_pids, "NUMBER",
     "most processes and threads of a pod; -1: as many as the node has"},
};

constexpr Flag kHeadroomFlags[] = {
    {"--mode", &CommandLine::mode, "observe|enforce", "say what would be done, or do it"},
    {"--listen", &CommandLine::listen, "HOST:PORT", "metrics endpoint; empty: none"},
    {"--metrics-listen", &CommandLine::metrics_listen, "HOST:PORT",
     "where headroom-kube serves the metrics over HTTPS; empty: nowhere"},
};

void add(CLI::App& app, CommandLine& line, const Flag& flag) {
  CommandLine::FlagValues& values = line.*flag.values;
  // A switch's value is joined by "=", as pflag has it: "--cgroups-per-qos false" would be a stray
  // word.
  CLI::Option* option =
      flag.type ? app.add_option(flag.name, values, flag.help)->type_name(flag.type)->expected(1)
                : app.add_flag(flag.name, values, flag.help);
  if (flag.type) option->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_query_flags(CLI::App& app, CommandLine& line) {
  app.add_flag("--check-config", line.check_config,
               "read the configuration, report every error and exit: 0 if there is none, else 2");
  app.add_flag("--restore", line.restore,
               "restore what a headroomd that has ended left changed (limits, OOM scores, CPUs), "
               "and exit");
  app.add_flag("--version", line.version, "print the version and exit");
  app.set_help_flag();
  app.add_flag("--help", line.help, "print this and exit");
}

std::unique_ptr<CLI::App> make_app(CommandLine& line) {
  auto app = std::make_unique<CLI::App>(
      "Keeps headroom on this node: evicts pods by the kubelet's rules. Flags win over the file.",
      "headroomd");
  app->allow_extras();  // ours to complain of, each with the flag it may have meant
  for (const Flag& flag : kKubeletFlags)
    add(*app, line, flag);
  for (const Flag& flag : kHeadroomFlags)
    add(*app, line, flag);
  add_query_flags(*app, line);
  return app;
}

std::vector<std::string_view> flag_names(const CLI::App& app, std::vector<std::string>& backing) {
  for (const CLI::Option* option : app.get_options())
    backing.push_back(option->get_name());
  return {backing.begin(), backing.end()};
}

Diagnostics unknown_flags(const CLI::App& app) {
  std::vector<std::string> backing;
  const std::vector<std::string_view> known = flag_names(app, backing);
  Diagnostics diagnostics;
  for (const std::string& argument : app.remaining()) {
    if (argument.empty()) continue;  // the value split from an unknown "--flag="
    const std::string name = argument.substr(0, argument.find('='));
    const bool flag = name.starts_with("-");
    diagnostics.push_back({"", 0,
                           flag ? "unknown flag " + name + did_you_mean(name, known)
                                : "unexpected argument \"" + argument + "\""});
  }
  return diagnostics;
}

// CLI11 takes "--eviction-hard=" for a flag that lacks its value; to the kubelet it has one, the
// empty one, which turns the thresholds off.
std::vector<std::string> to_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const bool empty_value = argument.starts_with("--") && argument.size() > 3 &&
                             argument.find('=') == argument.size() - 1;
    if (empty_value) argument.pop_back();
    arguments.push_back(std::move(argument));
    if (empty_value) arguments.emplace_back();
  }
  return arguments;
}

}  // namespace

tl::expected<CommandLine, Diagnostics> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  try {
    const auto app = make_app(line);
    std::vector<std::string> arguments = to_arguments(argc, argv);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 wants the last word first
    app->parse(std::move(arguments));
    if (Diagnostics diagnostics = unknown_flags(*app); !diagnostics.empty())
      return tl::make_unexpected(std::move(diagnostics));
  } catch (const CLI::Error& error) {
    return tl::make_unexpected(Diagnostics{{"", 0, error.what()}});
  }
  return line;
}

std::string help_text() {
  CommandLine line;
  return make_app(line)->help();
}

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The pieces between commas; empty ones are none, so "" is an empty list.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (!trimmed(piece).empty()) all.push_back(trimmed(piece));
  }
  return all;
}

}  // namespace

void apply_map_flag(const CommandLine::FlagValues& values, const std::string& flag,
                    std::string_view form, std::optional<LocatedValue>& value,
                    Diagnostics& diagnostics) {
  if (values.empty()) return;
  const char sign = form[form.find_first_of("<=")];
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& text : values) {
    for (const std::string_view pair : pieces(text)) {
      const std::size_t at = pair.find(sign);
      if (at == std::string_view::npos)
        diagnostics.push_back(
            {flag, 0, "\"" + std::string(pair) + "\": expected " + std::string(form)});
      else
        value->strings.push_back({std::string(trimmed(pair.substr(0, at))),
                                  std::string(trimmed(pair.substr(at + 1))), 0});
    }
  }
}

void apply_list_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value) {
  if (values.empty()) return;
  value = LocatedValue{flag, 0, {}, {}};
  for (const std::string& text : values)
    for (const std::string_view word : pieces(text))
      value->strings.push_back({"", std::string(word), 0});
}

void apply_string_flag(const CommandLine::FlagValues& values, const std::string& flag,
                       std::optional<LocatedValue>& value) {
  if (!values.empty()) value = LocatedValue{flag, 0, {LocatedText{"", values.back(), 0}}, {}};
}

std::optional<bool> parse_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                                    Diagnostics& diagnostics) {
  if (values.empty()) return std::nullopt;
  if (values.back() == "true" || values.back() == "false") return values.back() == "true";
  diagnostics.push_back({flag, 0, "expected true or false, found \"" + values.back() + "\""});
  return std::nullopt;
}

std::optional<std::int64_t> parse_count_flag(const CommandLine::FlagValues& values,
                                             const std::string& flag, Diagnostics& diagnostics) {
  if (values.empty()) return std::nullopt;
  const std::string& text = values.back();
  std::int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0) return count;
  diagnostics.push_back(
      {flag, 0, "expected a whole number, not negative (32 bits), found \"" + text + "\""});
  return std::nullopt;
}

void apply_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value, Diagnostics& diagnostics) {
  if (parse_bool_flag(values, flag, diagnostics)) apply_string_flag(values, flag, value);
}

}  // namespace headroom::config
