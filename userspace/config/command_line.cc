// SPDX-License-Identifier: Apache-2.0
#include "config/command_line.h"

#include "config/suggest.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace headroom::config {
namespace {

void add_value(CLI::App& app, const std::string& name, CommandLine::Uses& uses,
               const std::string& type, const std::string& help) {
  app.add_option(name, uses, help)
      ->type_name(type)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_kubelet_flags(CLI::App& app, CommandLine& line) {
  add_value(app, "--config", line.config, "FILE",
            "KubeletConfiguration with a headroom: section (/etc/headroom/headroom.yaml)");
  add_value(app, "--eviction-hard", line.eviction_hard, "SIGNAL<VALUE,...",
            "evict at once below these");
  add_value(app, "--eviction-soft", line.eviction_soft, "SIGNAL<VALUE,...",
            "evict below these after their grace period");
  add_value(app, "--eviction-soft-grace-period", line.eviction_soft_grace_period,
            "SIGNAL=DURATION,...", "how long below a soft threshold");
  add_value(app, "--eviction-minimum-reclaim", line.eviction_minimum_reclaim, "SIGNAL=VALUE,...",
            "once evicting, how far above the threshold to go");
  add_value(app, "--eviction-max-pod-grace-period", line.eviction_max_pod_grace_period, "SECONDS",
            "longest grace a soft eviction grants; negative: the pod's own");
  add_value(app, "--eviction-pressure-transition-period", line.eviction_pressure_transition_period,
            "DURATION", "how long a pressure condition outlasts its cause");
  add_value(app, "--enforce-node-allocatable", line.enforce_node_allocatable, "KEY,...",
            "pods, system-reserved, kube-reserved, ... or none");
}

void add_cpu_flags(CLI::App& app, CommandLine& line) {
  add_value(app, "--cpu-manager-policy", line.cpu_manager_policy, "none|static",
            "whether Guaranteed pods get whole CPUs of their own");
  add_value(app, "--cpu-manager-policy-options", line.cpu_manager_policy_options,
            "OPTION=BOOLEAN,...", "full-pcpus-only, strict-cpu-reservation, ...");
  add_value(app, "--cpu-manager-reconcile-period", line.cpu_manager_reconcile_period, "DURATION",
            "how often all CPU sets are looked at");
  add_value(app, "--topology-manager-policy", line.topology_manager_policy, "POLICY",
            "none, best-effort, restricted or single-numa-node");
  add_value(app, "--topology-manager-policy-options", line.topology_manager_policy_options,
            "OPTION=VALUE,...", "prefer-closest-numa-nodes, max-allowable-numa-nodes");
  add_value(app, "--topology-manager-scope", line.topology_manager_scope, "container|pod",
            "what is aligned as one");
}

// A value is joined by "=", as pflag has it: "--cgroups-per-qos false" would be a stray word.
void add_switch(CLI::App& app, const std::string& name, CommandLine::Uses& uses,
                const std::string& help) {
  app.add_flag(name, uses, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_reserve_flags(CLI::App& app, CommandLine& line) {
  add_value(app, "--kube-reserved", line.kube_reserved, "NAME=QUANTITY,...",
            "kept back from pods for the node's services: cpu, memory, ephemeral-storage, pid");
  add_value(app, "--system-reserved", line.system_reserved, "NAME=QUANTITY,...",
            "the same, for the operating system");
  add_value(app, "--kube-reserved-cgroup", line.kube_reserved_cgroup, "SLICE",
            "the slice that kube-reserved is enforced on");
  add_value(app, "--system-reserved-cgroup", line.system_reserved_cgroup, "SLICE",
            "the slice that system-reserved is enforced on");
  add_value(app, "--reserved-cpus", line.reserved_cpus, "CPUS",
            "CPUs kept back, such as 0-1; in place of what is reserved of cpu");
  add_value(app, "--qos-reserved", line.qos_reserved, "memory=PERCENT%",
            "share of better classes' memory requests that lesser ones may not use");
  add_switch(app, "--cgroups-per-qos", line.cgroups_per_qos,
             "a cgroup for all pods and one for each lesser class (true)");
  add_value(app, "--cgroup-root", line.cgroup_root, "CGROUP", "where the pods' cgroup is made (/)");
  add_value(app, "--cgroup-driver", line.cgroup_driver, "systemd|cgroupfs",
            "how cgroups are named");
  add_switch(app,
             "--experimental-allocatable-ignore-eviction,"
             "--experimental-node-allocatable-ignore-eviction-threshold",
             line.ignore_eviction_threshold,
             "do not take hard eviction thresholds off what pods may have");
}

void add_our_flags(CLI::App& app, CommandLine& line) {
  add_value(app, "--mode", line.mode, "observe|enforce", "say what would be done, or do it");
  add_value(app, "--listen", line.listen, "HOST:PORT", "metrics endpoint; empty: none");
  app.add_flag("--check-config", line.check_config,
               "read the configuration, report every mistake and exit: 0 if there is none, else 2");
  app.add_flag("--version", line.version, "print the version and exit");
  app.set_help_flag();
  app.add_flag("--help", line.help, "print this and exit");
}

std::unique_ptr<CLI::App> make_app(CommandLine& line) {
  auto app = std::make_unique<CLI::App>(
      "Keeps headroom on this node: evicts pods by the kubelet's rules. Flags win over the file.",
      "headroomd");
  app->allow_extras();  // ours to complain of, each with the flag it may have meant
  add_kubelet_flags(*app, line);
  add_cpu_flags(*app, line);
  add_reserve_flags(*app, line);
  add_our_flags(*app, line);
  return app;
}

std::vector<std::string_view> flag_names(const CLI::App& app, std::vector<std::string>& backing) {
  for (const CLI::Option* option : app.get_options())
    backing.push_back(option->get_name());
  return {backing.begin(), backing.end()};
}

Complaints unknown_flags(const CLI::App& app) {
  std::vector<std::string> backing;
  const std::vector<std::string_view> known = flag_names(app, backing);
  Complaints complaints;
  for (const std::string& word : app.remaining()) {
    if (word.empty()) continue;  // the value split from an unknown "--flag="
    const std::string name = word.substr(0, word.find('='));
    const bool flag = name.starts_with("-");
    complaints.push_back({"", 0,
                          flag ? "unknown flag " + name + did_you_mean(name, known)
                               : "unexpected argument \"" + word + "\""});
  }
  return complaints;
}

// CLI11 takes "--eviction-hard=" for a flag that lacks its value; to the kubelet it has one, the
// empty one, which turns the thresholds off.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const bool empty_value =
        word.starts_with("--") && word.size() > 3 && word.find('=') == word.size() - 1;
    if (empty_value) word.pop_back();
    words.push_back(std::move(word));
    if (empty_value) words.emplace_back();
  }
  return words;
}

}  // namespace

tl::expected<CommandLine, Complaints> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  try {
    const auto app = make_app(line);
    std::vector<std::string> words = words_of(argc, argv);
    std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
    app->parse(std::move(words));
    if (Complaints complaints = unknown_flags(*app); !complaints.empty())
      return tl::make_unexpected(std::move(complaints));
  } catch (const CLI::Error& error) {
    return tl::make_unexpected(Complaints{{"", 0, error.what()}});
  }
  return line;
}

std::string help_text() {
  CommandLine line;
  return make_app(line)->help();
}

}  // namespace headroom::config
