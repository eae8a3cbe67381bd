// SPDX-License-Identifier: Apache-2.0
// headroomctl simulate: a fleet of nodes on virtual time, and what another configuration would have
// done to recorded nodes.
#pragma once

#include "ctl/common/commands.h"
#include "ctl/common/text_table.h"
#include "recording/replayer.h"
#include "simulate/fleet/fleet.h"
#include "simulate/predict/evaluation.h"
#include "simulate/workload/generator.h"

#include <headroom/result.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::ctl {

// What was simulated, for the heading of each output.
struct SimulatedFleet {
  simulate::WorkloadOptions workload;
  simulate::NodeShape shape;
  std::string source;  // "generated pods", or the traces
};

std::string render_fleet(const SimulatedFleet& fleet,
                         const std::vector<simulate::FleetResult>& results, const Screen& screen);
std::string fleet_json(const SimulatedFleet& fleet,
                       const std::vector<simulate::FleetResult>& results);
// A picture, as a standalone SVG file: memory in use, evictions and kernel OOM kills over time for
// each agent, and how long each took to decide.
std::string fleet_svg(const SimulatedFleet& fleet,
                      const std::vector<simulate::FleetResult>& results);

// The latency that this share of the decisions did not exceed; absent: there were none.
std::optional<Duration> latency_at(const simulate::FleetResult& result, double share);

// --- recorded nodes ------------------------------------------------------------------------------

struct ReplayedNode {
  std::string file;
  std::int64_t wall_offset = 0;
  recording::Replayed replayed;
};

// Replays each file with the configuration's policy, on all threads. The errors of all files.
tl::expected<std::vector<ReplayedNode>, std::vector<std::string>> replay_nodes(
    const std::vector<std::string>& files, const recording::PolicyOverride& policy,
    std::size_t threads);

std::string render_nodes(const std::vector<ReplayedNode>& nodes, const Screen& screen);
std::string nodes_json(const std::vector<ReplayedNode>& nodes);

// --- peak predictors -----------------------------------------------------------------------------

std::string render_evaluation(const simulate::EvaluationOptions& options,
                              const simulate::Evaluation& found, const Screen& screen);
std::string evaluation_json(const simulate::EvaluationOptions& options,
                            const simulate::Evaluation& found);

// Adds the subcommand to `simulate`.
void add_predict(ArgumentParser& simulate, CliCommand& chosen);

void add_simulate(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
