// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "base/state/json_integer.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/manifest_input.h"
#include "ctl/common/print_error.h"
#include "manifest/node_manifest.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

struct AdmitOptions {
  std::string file;  // "-": standard input
  bool json = false;
};

std::string printable_field(const nlohmann::json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

std::string name_of(const nlohmann::json& pod) {
  return printable_field(pod, "namespace") + "/" + printable_field(pod, "name");
}

// The kubelet's messages end with a space.
std::string trimmed(std::string text) {
  while (text.ends_with(' '))
    text.pop_back();
  return text;
}

std::string refusals(const nlohmann::json& list, const Screen& screen) {
  std::vector<Row> rows;
  for (const nlohmann::json& refusal : list)
    rows.push_back({{"  " + printable_field(refusal, "reason"), Colour::kYellow},
                    {printable_field(refusal, "by")},
                    {trimmed(printable_field(refusal, "message"))}});
  return rows.empty() ? "" : table(rows, 3, screen);
}

std::string heading(const nlohmann::json& pod, const Screen& screen) {
  const bool admitted = pod.at("admitted").get<bool>();
  const std::size_t preempted = pod.at("preemption_victims").size();
  std::string verdict = admitted ? "admitted" : "refused";
  if (preempted > 0)
    verdict += fmt::format(", preempting {} pod{}", preempted, preempted == 1 ? "" : "s");
  return name_of(pod) + ": " +
         colourise(verdict, admitted ? Colour::kGreen : Colour::kRed, screen) + "\n";
}

std::string render_pod(const nlohmann::json& pod, const Screen& screen) {
  std::string text = heading(pod, screen);
  text += refusals(pod.at("refusals"), screen);
  text += refusals(pod.at("resolved_by_preemption"), screen);
  for (const nlohmann::json& other : pod.at("preemption_victims"))
    text +=
        fmt::format("  preempts {} ({}, priority {})\n", name_of(other),
                    printable_field(other, "qos"), integer_of<std::int64_t>(other.at("priority")));
  for (const nlohmann::json& taint : pod.at("untolerated_preferred_taints"))
    text += fmt::format("  another node is preferred: it does not tolerate {}\n",
                        printable(taint.get<std::string>()));
  return text;
}

struct PlaceOptions {
  std::string file;                // "-": standard input
  std::vector<std::string> nodes;  // node status files
  bool json = false;
};

using Json = nlohmann::ordered_json;

Row titles() {
  Row row;
  for (const char* title : {"NODE", "TOTAL", "LEAST ALLOCATED", "BALANCED", "TAINTS", "AFFINITY"})
    row.push_back({title, Colour::kBold});
  return row;
}

Row score_row(const NodeState& node, const Scores& scores, bool chosen) {
  return {{printable(node.name), chosen ? Colour::kGreen : Colour::kNone},
          {std::to_string(scores.total())},
          {std::to_string(scores.least_allocated)},
          {std::to_string(scores.balanced_allocation)},
          {std::to_string(scores.taint_toleration)},
          {std::to_string(scores.node_affinity)}};
}

// Indices of the feasible nodes, best first.
std::vector<std::size_t> by_total(std::span<const NodeState> nodes, const PlacementResult& places) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (places.nodes[i].scores) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto a_total = places.nodes[a].scores->total(), b_total = places.nodes[b].scores->total();
    return a_total != b_total ? a_total > b_total : nodes[a].name < nodes[b].name;
  });
  return order;
}

Json scores_json(const Scores& scores) {
  return {{"total", scores.total()},
          {"leastAllocated", scores.least_allocated},
          {"balancedAllocation", scores.balanced_allocation},
          {"taintToleration", scores.taint_toleration},
          {"nodeAffinity", scores.node_affinity}};
}

struct Nodes {
  std::vector<NodeState> states;
  config::Diagnostics diagnostics;
};

Nodes read_all(const std::vector<std::string>& files) {
  Nodes all;
  std::map<std::string, std::string> first_file;
  for (const std::string& file : files) {
    observe::NodeManifests read = observe::read_nodes(file);
    std::move(read.diagnostics.begin(), read.diagnostics.end(),
              std::back_inserter(all.diagnostics));
    for (NodeState& node : read.nodes) {
      const auto [first, added] = first_file.emplace(node.name, file);
      if (added)
        all.states.push_back(std::move(node));
      else
        all.diagnostics.push_back(
            {file, 0, "node " + node.name + " is already in " + first->second});
    }
  }
  return all;
}

}  // namespace

Result<RenderedAdmission> render_admission(std::string_view result, const Screen& screen) {
  RenderedAdmission rendered{"", true};
  try {
    const nlohmann::json json = nlohmann::json::parse(result);
    for (const nlohmann::json& pod : json.at("pods")) {
      rendered.text += render_pod(pod, screen);
      rendered.all_admitted = rendered.all_admitted && pod.at("admitted").get<bool>();
    }
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
  return rendered;
}

namespace {

int run_admit(const AdmitOptions& options) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return print_error(manifest.error());
  const CallResult result = check_admission(manifest->text);
  if (!result) return print_error(result.error());
  const Screen screen{.colour = screen_of_stdout().colour};
  const auto rendered = render_admission(*result, screen);
  if (!rendered)
    return print_error(CallError{CallError::Kind::kUnreachable, rendered.error().what});
  std::fputs((options.json ? *result + "\n" : rendered->text).c_str(), stdout);
  return rendered->all_admitted ? 0 : kFailed;
}

}  // namespace

void add_admit(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<AdmitOptions>();
  auto* admit = app.add_subcommand("admit", "Would these pods be admitted now?");
  admit->group(kQueryGroup);
  admit->add_option("-f,--file", options->file, "A v1 Pod manifest; - is standard input")
      ->required();
  admit->add_flag("--json", options->json, "Print headroomd's answer as JSON");
  admit->callback([&chosen, options] { chosen = [options] { return run_admit(*options); }; });
}

std::string render_places(const Pod& pod, std::span<const NodeState> nodes,
                          const PlacementResult& places, const Screen& screen) {
  std::vector<Row> rows{titles()};
  for (const std::size_t i : by_total(nodes, places))
    rows.push_back(score_row(nodes[i], *places.nodes[i].scores, places.chosen == i));
  std::string text = rows.size() > 1 ? table(rows, 1, screen) : "";
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!places.nodes[i].scores)
      text += fmt::format("{}: {}\n", colourise(printable(nodes[i].name), Colour::kYellow, screen),
                          printable(fmt::format("{}", fmt::join(places.nodes[i].reasons, "; "))));
  const std::string name = printable(pod.pod_namespace + "/" + pod.name);
  if (places.chosen)
    return text +
           fmt::format("{}: the best node is {}\n", name, printable(nodes[*places.chosen].name));
  return text + fmt::format("{}: 0/{} nodes are available\n", name, nodes.size());
}

std::string places_json(const Pod& pod, std::span<const NodeState> nodes,
                        const PlacementResult& places) {
  Json list = Json::array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeCandidate& candidate = places.nodes[i];
    list.push_back({{"name", nodes[i].name},
                    {"feasible", candidate.scores.has_value()},
                    {"reasons", candidate.reasons},
                    {"scores", candidate.scores ? scores_json(*candidate.scores) : Json(nullptr)}});
  }
  const Json whole{{"namespace", pod.pod_namespace},
                   {"name", pod.name},
                   {"node", places.chosen ? Json(nodes[*places.chosen].name) : Json(nullptr)},
                   {"nodes", std::move(list)}};
  return to_json_text(whole) + "\n";
}

namespace {

int run_place(const PlaceOptions& options) {
  auto manifest = read_manifest(options.file);
  Nodes nodes = read_all(options.nodes);
  config::Diagnostics diagnostics = manifest ? config::Diagnostics{} : std::move(manifest.error());
  std::move(nodes.diagnostics.begin(), nodes.diagnostics.end(), std::back_inserter(diagnostics));
  if (manifest && manifest->pods.size() > 1)
    diagnostics.push_back(
        {options.file, 0, "expected one Pod, found " + std::to_string(manifest->pods.size())});
  if (!diagnostics.empty()) return print_error(diagnostics);
  const Pod& pod = manifest->pods.front();
  const PlacementResult places = select_node(pod, nodes.states);
  const Screen screen{.colour = screen_of_stdout().colour};
  const std::string text = options.json ? places_json(pod, nodes.states, places)
                                        : render_places(pod, nodes.states, places, screen);
  std::fputs(text.c_str(), stdout);
  return places.chosen ? 0 : kFailed;
}

}  // namespace

void add_place(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<PlaceOptions>();
  auto* select_node = app.add_subcommand("place", "Choose the best of several nodes for a pod");
  select_node->group(kQueryGroup);
  select_node->add_option("-f,--file", options->file, "A v1 Pod manifest; - is standard input")
      ->required();
  select_node
      ->add_option("NODE", options->nodes, "Node status files, such as /run/headroom/node.json")
      ->required();
  select_node->add_flag("--json", options->json, "As JSON");
  select_node->callback([&chosen, options] { chosen = [options] { return run_place(*options); }; });
}

}  // namespace headroom::ctl
