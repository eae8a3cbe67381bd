// SPDX-License-Identifier: Apache-2.0
#include "ctl/advise/reserves.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

namespace headroom::ctl {
namespace {

struct ReservesOptions {
  std::vector<std::string> files;
  std::string predictor = "percentile";
  bool json = false, yaml = false;
};

// Without `limits`: a reserve has none to take a share of.
std::vector<std::string> predictor_names() {
  std::vector<std::string> names;
  for (const NamedPredictor& each : kPeakPredictors)
    if (each.predict != predict_limits) names.emplace_back(each.name);
  return names;
}

int run_advise_reserves(const ReservesOptions& options) {
  RecordedReserves recorded;
  for (const std::string& file : options.files) {
    auto tape = open_recording(file);
    if (!tape) return print_usage_error(tape.error());
    if (auto added = add_recording(*tape, recorded); !added)
      return print_usage_error(Error{file + ": " + added.error().what});
  }
  const auto predictor = std::ranges::find(kPeakPredictors, options.predictor,
                                           [](const NamedPredictor& each) { return each.name; });
  const auto advised = advise_reserves(std::move(recorded), *predictor);
  if (!advised) return print_error(advised.error());
  const std::string text = options.json   ? reserves_json(*advised)
                           : options.yaml ? reserves_yaml(*advised)
                                          : render_reserves(*advised, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void add_advise_reserves(ArgumentParser& advise, CliCommand& chosen) {
  auto options = std::make_shared<ReservesOptions>();
  auto* reserves = advise.add_subcommand(
      "reserves", "kubeReserved and systemReserved that the recorded use asks for");
  reserves
      ->add_option("FILE", options->files,
                   "Recordings of one node, or of nodes that are alike; - is standard input")
      ->required();
  reserves->add_option("--predictor", options->predictor, "What predicts the highest use")
      ->capture_default_str()
      ->check_member(predictor_names());
  auto* json = reserves->add_flag("--json", options->json, "As JSON, with the evidence");
  reserves->add_flag("--yaml", options->yaml, "Only the keys of a KubeletConfiguration")
      ->excludes(json);
  reserves->callback(
      [&chosen, options] { chosen = [options] { return run_advise_reserves(*options); }; });
}

}  // namespace headroom::ctl
