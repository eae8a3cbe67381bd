// SPDX-License-Identifier: Apache-2.0
// headroomctl: the hand tool. Exit status: 0 done or yes, 1 it could not be done or no, 2 asked
// wrongly, 3 (where 1 is no) headroomd does not answer.
#include "ctl/admit.h"
#include "ctl/complain.h"
#include "ctl/evictions.h"
#include "ctl/place.h"
#include "ctl/status.h"
#include "ctl/taint.h"
#include "ctl/top.h"

#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

namespace {

constexpr const char* kExamples = R"(Examples:
  headroomctl status                  signals, thresholds and conditions, once
  headroomctl status --json | jq .thresholds
  headroomctl top                     the same and every pod, live; q quits
  headroomctl top --once | head       for scripts and reports
  headroomctl evictions -n 5          the last five evictions
  headroomctl evictions --json | jq -r '.pod.name + " " + .message'
  headroomctl taint dedicated=gpu:NoExecute       pods that do not tolerate it leave
  headroomctl taint dedicated-    take it away again
  headroomctl admit -f web.yaml   would this pod be admitted now? else every reason why not
  headroomctl place -f web.yaml a.json b.json     on which of these nodes does it belong?

Exit status: 0 done or yes, 1 it could not be done or no, 2 asked wrongly; of taint and admit
3 as well: headroomd does not answer.)";

struct Asked {
  bool status_json = false;
  headroom::ctl::TopOptions top;
  headroom::ctl::EvictionsOptions evictions;
  headroom::ctl::TaintOptions taint;
  headroom::ctl::AdmitOptions admit;
  headroom::ctl::PlaceOptions place;
};

void describe_placing(CLI::App& app, Asked& asked) {
  auto* taint = app.add_subcommand("taint", "The node's taints: list, add and remove");
  taint->add_option("EDIT", asked.taint.edits,
                    "KEY=VALUE:EFFECT or KEY:EFFECT adds, KEY:EFFECT- or KEY- removes; none lists");
  taint->add_flag("--overwrite", asked.taint.overwrite, "Replace another value of the same taint");
  taint->add_flag("--json", asked.taint.json, "As JSON");
  auto* admit = app.add_subcommand("admit", "Would these pods be admitted now?");
  admit->add_option("-f,--file", asked.admit.file, "A v1 Pod manifest; - is standard input")
      ->required();
  admit->add_flag("--json", asked.admit.json, "headroomd's answer as it is");
  auto* place = app.add_subcommand("place", "On which of several nodes a pod belongs");
  place->add_option("-f,--file", asked.place.file, "A v1 Pod manifest; - is standard input")
      ->required();
  place->add_option("NODE", asked.place.nodes, "Node status files, such as /run/headroom/node.json")
      ->required();
  place->add_flag("--json", asked.place.json, "As JSON");
}

void describe(CLI::App& app, Asked& asked) {
  app.set_version_flag("-V,--version", std::string("headroomctl ") + HEADROOM_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  auto* status = app.add_subcommand("status", "How the node stands: signals against thresholds");
  status->add_flag("--json", asked.status_json, "headroomd's status document as it is");
  auto* top = app.add_subcommand("top", "A live view of the node and its pods");
  top->add_flag("--once", asked.top.once, "One frame, and no more (takes a second)");
  top->add_flag("--json", asked.top.json, "The status document, a line each second");
  auto* evictions = app.add_subcommand("evictions", "The evictions on record, oldest first");
  evictions->add_option("-n,--last", asked.evictions.last, "How many; 0 is all")
      ->capture_default_str();
  evictions->add_option("--file", asked.evictions.file,
                        "The audit log to read (default: headroomd's)");
  evictions->add_flag("--json", asked.evictions.json, "The records as they are, a line each");
  describe_placing(app, asked);
}

int run(const CLI::App& app, const Asked& asked) {
  if (app.got_subcommand("status")) return headroom::ctl::run_status(asked.status_json);
  if (app.got_subcommand("top")) return headroom::ctl::run_top(asked.top);
  if (app.got_subcommand("taint")) return headroom::ctl::run_taint(asked.taint);
  if (app.got_subcommand("admit")) return headroom::ctl::run_admit(asked.admit);
  if (app.got_subcommand("place")) return headroom::ctl::run_place(asked.place);
  return headroom::ctl::run_evictions(asked.evictions);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What headroomd sees and does on this node.", "headroomctl");
  Asked asked;
  try {
    describe(app, asked);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : headroom::ctl::kUsage;
  } catch (const std::exception& e) {
    return headroom::ctl::complain({e.what()});
  }
  try {
    return run(app, asked);
  } catch (const std::exception& e) {
    return headroom::ctl::complain({e.what()});
  }
}
