// SPDX-License-Identifier: Apache-2.0
#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/print_error.h"
#include "ctl/simulate/simulate.h"
#include "ctl/simulate/trace_files.h"
#include "judge/eviction/threshold/threshold.h"
#include "judge/eviction/threshold/threshold_config.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

namespace headroom::ctl {
namespace {

struct SimulateOptions {
  std::size_t nodes = 100, pods_per_node = 15, seed = 1, threads = 0;
  std::string hours = "24", node_memory = "64Gi", node_cpu = "16", system_memory = "2Gi";
  std::string bursts = "1", requested = "0.75";
  std::string agents = "headroom,kubelet,koordinator,none";
  std::string config, svg, record;
  std::vector<std::string> traces, recordings;
  bool skip_errors = false, json = false;
};

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double number_option(const std::string& option, const std::string& text, double least, double most,
                     Errors& errors) {
  const auto value = number(text);
  if (value && *value >= least && *value <= most) return *value;
  errors.add(option + " " + text + ": expected a number from " + std::to_string(least) + " to " +
             std::to_string(most));
  return least;
}

Bytes bytes_option(const std::string& option, const std::string& text, Errors& errors) {
  const auto quantity = Quantity::parse(text);
  if (quantity && quantity->sign() > 0 && quantity->value() < std::int64_t{1} << 50)
    return Bytes{quantity->value()};
  errors.add(option + " " + text + ": expected an amount of memory such as 64Gi");
  return Bytes{std::int64_t{1} << 30};
}

// --- the configuration ---------------------------------------------------------------------------

std::optional<config::Config> load_config(const std::string& file) {
  config::CommandLine line;
  line.config = {file};
  config::LoadResult loaded = config::read(line);
  print_error(loaded.diagnostics);
  if (!loaded.diagnostics.empty()) return std::nullopt;
  for (const std::string& warning : loaded.warnings)
    std::fprintf(stderr, "headroomctl: %s\n", warning.c_str());
  return std::move(loaded.config);
}

// Mode enforce: what would be done is what is simulated.
std::shared_ptr<const Policy> policy_of(const std::optional<config::Config>& config) {
  auto policy = std::make_shared<Policy>(config ? config->policy : Policy{});
  policy->mode = Mode::kEnforce;
  if (!config) policy->thresholds = *build_thresholds({});
  return policy;
}

Bytes hard_threshold(const Policy& policy, Bytes capacity) {
  for (const Threshold& threshold : policy.thresholds)
    if (threshold.signal == Signal::kMemoryAvailable && threshold.hard())
      return Bytes{resolve(threshold.value, capacity.count)};
  return {};
}

std::string source_of(const SimulateOptions& options, const Traces& traces) {
  if (options.traces.empty()) return "generated pods";
  std::string source;
  if (!traces.arrivals.empty())
    source += std::to_string(traces.arrivals.size()) + " arrivals of a trace";
  if (!traces.series.empty())
    source += (source.empty() ? "" : ", ") + std::string("memory use of ") +
              std::to_string(traces.series.size()) + " traced pods";
  return source;
}

// --- the run -------------------------------------------------------------------------------------

std::vector<simulate::AgentKind> agents_of(const std::string& list, Errors& errors) {
  std::vector<simulate::AgentKind> agents;
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const auto found = std::find(simulate::kAgentNames.begin(), simulate::kAgentNames.end(), name);
    if (found == simulate::kAgentNames.end())
      errors.add("--agents " + std::string(name) +
                 ": expected headroom, kubelet, koordinator or none");
    else
      agents.push_back(static_cast<simulate::AgentKind>(found - simulate::kAgentNames.begin()));
  }
  if (agents.empty() && !errors.any()) errors.add("--agents: expected at least one agent");
  return agents;
}

// NODE=FILE of --record.
struct RecordedNode {
  std::uint32_t node = 0;
  std::string file;
};

std::optional<RecordedNode> recorded_node(const SimulateOptions& options, Errors& errors) {
  if (options.record.empty()) return std::nullopt;
  const std::size_t equals = options.record.find('=');
  const auto node = number(options.record.substr(0, equals));
  if (equals == std::string::npos || !node || *node < 0 ||
      *node >= static_cast<double>(options.nodes) || *node != static_cast<std::uint32_t>(*node)) {
    errors.add("--record " + options.record + ": expected NODE=FILE with a node from 0 to " +
               std::to_string(options.nodes - 1));
    return std::nullopt;
  }
  return RecordedNode{static_cast<std::uint32_t>(*node), options.record.substr(equals + 1)};
}

Result<> write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) return errno_failure("write " + file, errno);
  return {};
}

std::size_t thread_count(const SimulateOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

SimulatedFleet fleet_of(const SimulateOptions& options, const Policy& policy, Errors& errors) {
  SimulatedFleet fleet;
  if (options.nodes > 100'000) errors.add("--nodes: expected at most 100000");
  fleet.workload.nodes = options.nodes;
  fleet.workload.pods_per_node = options.pods_per_node;
  fleet.workload.seed = options.seed;
  const double hours = number_option("--hours", options.hours, 0.01, 24 * 366, errors);
  fleet.workload.length =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::ratio<3600>>(hours));
  fleet.workload.bursts_per_node_day = number_option("--bursts", options.bursts, 0, 1000, errors);
  fleet.workload.requested_share =
      number_option("--requested", options.requested, 0.01, 10, errors);
  fleet.shape.capacity = bytes_option("--node-memory", options.node_memory, errors);
  fleet.shape.system = bytes_option("--system-memory", options.system_memory, errors);
  fleet.shape.milli_cpu = static_cast<std::int64_t>(
      1000 * number_option("--node-cpu", options.node_cpu, 0.1, 10'000, errors));
  fleet.shape.hard_threshold = hard_threshold(policy, fleet.shape.capacity);
  fleet.shape.allocatable = fleet.shape.capacity - fleet.shape.system - fleet.shape.hard_threshold;
  fleet.workload.node_memory = fleet.shape.capacity;
  fleet.workload.node_milli_cpu = fleet.shape.milli_cpu;
  if (fleet.shape.allocatable.count <= 0 && !errors.any())
    errors.add("--node-memory " + options.node_memory +
               ": expected more than --system-memory and the hard threshold of memory.available");
  return fleet;
}

int run_fleet(const SimulateOptions& options, const std::optional<config::Config>& config) {
  Errors errors;
  const auto policy = policy_of(config);
  SimulatedFleet fleet = fleet_of(options, *policy, errors);
  const auto agents = agents_of(options.agents, errors);
  const auto recorded = recorded_node(options, errors);
  Traces traces;
  for (const std::string& each : options.traces)
    read_trace_option(each, options.skip_errors, traces, errors);
  if (errors.any()) return errors.print();
  fleet.source = source_of(options, traces);
  fleet.workload.series = traces.series;
  const std::vector<simulate::PodPlan> plans =
      traces.arrivals.empty() ? simulate::generate_workload(fleet.workload)
                              : simulate::workload_of(fleet.workload, traces.arrivals);
  std::vector<simulate::FleetResult> results;
  for (const simulate::AgentKind agent : agents) {
    simulate::FleetOptions run{.nodes = options.nodes,
                               .shape = fleet.shape,
                               .length = fleet.workload.length,
                               .policy = policy,
                               .agent = agent,
                               .seed = options.seed,
                               .threads = thread_count(options)};
    if (recorded) run.recorded_node = recorded->node;
    results.push_back(simulate::simulate_fleet(run, plans));
    if (recorded && agent == simulate::AgentKind::kHeadroom)
      if (const auto written = write_text(recorded->file, results.back().recording); !written)
        return print_error(written.error());
  }
  if (!options.svg.empty())
    if (const auto written = write_text(options.svg, fleet_svg(fleet, results)); !written)
      return print_error(written.error());
  const std::string text =
      options.json ? fleet_json(fleet, results) : render_fleet(fleet, results, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run_recordings(const SimulateOptions& options, const std::optional<config::Config>& config) {
  if (!config)
    return print_usage_error(
        Error{"recordings are simulated with another configuration: expected --config FILE"});
  const auto nodes =
      replay_nodes(options.recordings, policy_override(*config), thread_count(options));
  if (!nodes) {
    Errors errors;
    for (const std::string& what : nodes.error())
      errors.add(what);
    return errors.print();
  }
  const std::string text =
      options.json ? nodes_json(*nodes) : render_nodes(*nodes, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run_simulate(const SimulateOptions& options) {
  std::optional<config::Config> config;
  if (!options.config.empty() && !(config = load_config(options.config))) return kUsage;
  return options.recordings.empty() ? run_fleet(options, config) : run_recordings(options, config);
}

void add_options(ArgumentParser& simulate, SimulateOptions& options) {
  simulate.add_option("RECORDING", options.recordings,
                      "Files of headroomctl record: what would --config have done to these nodes?");
  simulate.add_option("--config", options.config, "The policy of this configuration");
  simulate.add_option("--nodes", options.nodes, "Nodes")->capture_default_str()->check_positive();
  simulate.add_option("--hours", options.hours, "Hours of virtual time")->capture_default_str();
  simulate.add_option("--pods-per-node", options.pods_per_node, "Pods for each node, at any time")
      ->capture_default_str()
      ->check_positive();
  simulate.add_option("--node-memory", options.node_memory, "Memory of a node")
      ->capture_default_str();
  simulate.add_option("--node-cpu", options.node_cpu, "CPUs of a node")->capture_default_str();
  simulate
      .add_option("--system-memory", options.system_memory,
                  "Memory of a node that is in use outside of pods")
      ->capture_default_str();
  simulate
      .add_option("--requested", options.requested,
                  "Requests of all pods, as a share of the nodes' memory")
      ->capture_default_str();
  simulate
      .add_option("--bursts", options.bursts,
                  "Pods that take much memory at once, for each node and day")
      ->capture_default_str();
  simulate.add_option("--trace", options.traces,
                      "FORMAT=FILE: memory use or arrivals of a trace; - is standard input");
  simulate.add_flag("--skip-errors", options.skip_errors,
                    "Leave lines of a trace with errors out, instead of refusing the file");
  simulate.add_option("--agents", options.agents, "What watches the nodes, each in its own run")
      ->capture_default_str();
  simulate.add_option("--seed", options.seed, "The seed of the random numbers")
      ->capture_default_str();
  simulate.add_option("--threads", options.threads, "Threads; 0: one for each CPU")
      ->capture_default_str();
  simulate.add_option("--record", options.record, "NODE=FILE: record this node for replay");
  simulate.add_option("--svg", options.svg, "Write a picture to this file");
  simulate.add_flag("--json", options.json, "As JSON");
}

}  // namespace

void add_simulate(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<SimulateOptions>();
  auto* simulate = app.add_subcommand("simulate", "Simulate a fleet of nodes");
  simulate->group(kQueryGroup);
  add_options(*simulate, *options);
  add_predict(*simulate, chosen);
  simulate->callback([&chosen, options, simulate] {
    if (!simulate->subcommand_given()) chosen = [options] { return run_simulate(*options); };
  });
}

}  // namespace headroom::ctl
