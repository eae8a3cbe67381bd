// SPDX-License-Identifier: Apache-2.0
// headroomctl: the hand tool. Exit status: 0 done, 1 it could not be done, 2 asked wrongly.
#include "ctl/complain.h"
#include "ctl/evictions.h"
#include "ctl/status.h"
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

Exit status: 0 done, 1 it could not be done, 2 asked wrongly.)";

struct Asked {
  bool status_json = false;
  headroom::ctl::TopOptions top;
  headroom::ctl::EvictionsOptions evictions;
};

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
}

int run(const CLI::App& app, const Asked& asked) {
  if (app.got_subcommand("status")) return headroom::ctl::run_status(asked.status_json);
  if (app.got_subcommand("top")) return headroom::ctl::run_top(asked.top);
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
