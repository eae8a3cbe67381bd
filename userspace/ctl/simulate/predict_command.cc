// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/print_error.h"
#include "ctl/simulate/simulate.h"
#include "ctl/simulate/trace_files.h"
#include "judge/resources/go_duration.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using simulate::Evaluation;
using simulate::EvaluationOptions;
using simulate::PredictorScore;
using simulate::TracePart;
using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kParts{"all", "first", "second"};

struct PredictOptions {
  std::vector<std::string> traces;
  std::size_t nodes = 20, pods_per_node = 15, seed = 1;
  std::string history = "1h", horizon = "1h", part = "all";
  bool skip_errors = false, json = false;
};

Duration duration_option(const std::string& option, const std::string& text, Errors& errors) {
  const auto duration = parse_go_duration(text);
  if (duration && *duration >= std::chrono::minutes(2)) return *duration;
  errors.add(option + " " + text + ": expected a duration of two minutes or more, such as 1h");
  return std::chrono::hours(1);
}

TracePart part_of(const std::string& text, Errors& errors) {
  for (std::size_t i = 0; i < kParts.size(); ++i)
    if (kParts[i] == text) return static_cast<TracePart>(i);
  errors.add("--part " + text + ": expected all, first or second");
  return TracePart::kAll;
}

int run_predict(const PredictOptions& options) {
  Errors errors;
  EvaluationOptions evaluation{.nodes = options.nodes, .pods_per_node = options.pods_per_node};
  evaluation.seed = options.seed;
  evaluation.history = duration_option("--history", options.history, errors);
  evaluation.horizon = duration_option("--horizon", options.horizon, errors);
  evaluation.part = part_of(options.part, errors);
  Traces traces;
  for (const std::string& each : options.traces)
    read_trace_option(each, options.skip_errors, traces, errors);
  if (!errors.any() && traces.series.empty()) errors.add("the traces hold no memory use of pods");
  if (errors.any()) return errors.print();
  const Evaluation found = evaluate_predictors(traces.series, evaluation);
  if (found.predictions == 0)
    return print_error(
        Error{fmt::format("no prediction can be measured: {} pods count, {} have no limit, {} were "
                          "seen for less than "
                          "the others, and --history and --horizon together may exceed the trace",
                          found.pods, found.without_limit, found.too_short)});
  const std::string text = options.json ? evaluation_json(evaluation, found)
                                        : render_evaluation(evaluation, found, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string percent_exact(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

double of_oracle(const Evaluation& found, const PredictorScore& score) {
  return found.oracle > 0 ? score.savings / found.oracle : 0;
}

}  // namespace

std::string render_evaluation(const EvaluationOptions& options, const Evaluation& found,
                              const Screen& screen) {
  std::vector<Row> rows{{{"PREDICTOR", Colour::kBold},
                         {"SAVES", Colour::kBold},
                         {"OF THE ORACLE", Colour::kBold},
                         {"TOO LOW", Colour::kBold},
                         {"TIME ABOVE", Colour::kBold},
                         {"WORST", Colour::kBold}}};
  rows.push_back({{"oracle"},
                  {percent(found.oracle)},
                  {percent(1)},
                  {percent_exact(0)},
                  {percent_exact(0)},
                  {percent(0)}});
  for (const PredictorScore& score : found.scores)
    rows.push_back({{score.name},
                    {percent(score.savings)},
                    {percent(of_oracle(found, score))},
                    {percent_exact(score.violations)},
                    {percent_exact(score.time_above)},
                    {percent(std::max(score.worst, 0.0))}});
  return fmt::format(
             "{} pods ({} part), {} nodes of {} pods, {} seen, {} ahead, {} predictions\n\n",
             found.pods, kParts[static_cast<std::size_t>(options.part)], options.nodes,
             options.pods_per_node, report::human(options.history), report::human(options.horizon),
             found.predictions) +
         table(rows, 1, screen);
}

std::string evaluation_json(const EvaluationOptions& options, const Evaluation& found) {
  Json predictors = Json::array();
  for (const PredictorScore& score : found.scores)
    predictors.push_back({{"name", score.name},
                          {"savings_ratio", score.savings},
                          {"of_oracle_ratio", of_oracle(found, score)},
                          {"too_low_ratio", score.violations},
                          {"time_above_ratio", score.time_above},
                          {"worst_ratio", std::max(score.worst, 0.0)}});
  return to_json_text(Json{{"pods", found.pods},
                           {"part", kParts[static_cast<std::size_t>(options.part)]},
                           {"pods_without_limit", found.without_limit},
                           {"pods_seen_for_less", found.too_short},
                           {"nodes", options.nodes},
                           {"pods_per_node", options.pods_per_node},
                           {"predictions", found.predictions},
                           {"oracle_savings_ratio", found.oracle},
                           {"predictors", std::move(predictors)}}) +
         '\n';
}

void add_predict(ArgumentParser& simulate, CliCommand& chosen) {
  auto options = std::make_shared<PredictOptions>();
  auto* predict =
      simulate.add_subcommand("predict", "Measure predictors of a node's peak on traces");
  predict->add_option("--trace", options->traces, "FORMAT=FILE: memory use of pods")->required();
  predict->add_flag("--skip-errors", options->skip_errors,
                    "Leave lines with errors out, instead of refusing the file");
  predict->add_option("--nodes", options->nodes, "Nodes that pods are drawn onto")
      ->capture_default_str()
      ->check_positive();
  predict->add_option("--pods-per-node", options->pods_per_node, "Pods of each node")
      ->capture_default_str()
      ->check_positive();
  predict->add_option("--history", options->history, "The time that a predictor sees")
      ->capture_default_str();
  predict->add_option("--horizon", options->horizon, "The time that it predicts the peak of")
      ->capture_default_str();
  predict->add_option("--part", options->part, "Which half of the pods: all, first, second")
      ->capture_default_str();
  predict->add_option("--seed", options->seed, "The seed of the random numbers")
      ->capture_default_str();
  predict->add_flag("--json", options->json, "As JSON");
  predict->callback([&chosen, options] { chosen = [options] { return run_predict(*options); }; });
}

}  // namespace headroom::ctl
