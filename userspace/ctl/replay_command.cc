// SPDX-License-Identifier: Apache-2.0
#include "ctl/replay_command.h"

#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/print_error.h"
#include "judge/eviction/threshold/threshold_config.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace headroom::ctl {
namespace {

struct ReplayOptions {
  std::string file;
  std::string config;
  bool expect_same = false;
  bool json = false;
};

Result<std::string> read_whole(const std::string& name) {
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return errno_failure("read " + name, errno ? errno : EISDIR);
  return bytes;
}

// The configuration's policy on the recorded machine: speed, filesystems and the operator's taints
// are those of the recording.
recording::PolicyOverride policy_override(const config::Config& config) {
  return [config](const Policy& recorded, ImageStorage images) {
    Policy policy = config.policy;
    if (!config.fastest_fill_configured) policy.fastest_fill = recorded.fastest_fill;
    policy.thresholds = with_containerfs(std::move(policy.thresholds), images).thresholds;
    policy.taints = recorded.taints;
    return policy;
  };
}

void print(const recording::Replayed& replayed, std::int64_t wall_offset, bool json) {
  const std::string text = json ? replay_json(replayed, wall_offset)
                                : render_replay(replayed, wall_offset, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
}

int run_replay(const ReplayOptions& options) {
  auto bytes = read_whole(options.file);
  if (!bytes) return print_usage_error(bytes.error());
  auto tape = recording::TapeReader::open(std::move(*bytes));
  if (!tape) return print_usage_error(Error{options.file + ": " + tape.error().what});
  recording::PolicyOverride other;
  if (!options.config.empty()) {
    config::CommandLine line;
    line.config = {options.config};
    const config::LoadResult loaded = config::read(line);
    if (!loaded.diagnostics.empty()) return print_error(loaded.diagnostics);
    for (const std::string& warning : loaded.warnings)
      std::fprintf(stderr, "headroomctl: %s\n", warning.c_str());
    other = policy_override(loaded.config);
  }
  const auto replayed = recording::replay(*tape, other);
  if (!replayed) return print_usage_error(Error{options.file + ": " + replayed.error().what});
  print(*replayed, tape->header().wall_offset, options.json);
  // A recording that was cut short may still be the same: only turns lost in between count.
  const bool same =
      options.expect_same ? replayed->identical() && replayed->lost == 0 : replayed->same_acts();
  return same ? kSame : kDifferent;
}

}  // namespace

void add_replay(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<ReplayOptions>();
  auto* replay = app.add_subcommand("replay", "Replay a recording, with its policy or another");
  replay->group(kQueryGroup);
  replay->add_option("FILE", options->file, "A file that headroomctl record wrote")->required();
  replay->add_option("--config", options->config, "Use the policy of this configuration");
  replay->add_flag("--expect-same", options->expect_same,
                   "Every number must be equal, and no turn may be missing between others");
  replay->add_flag("--json", options->json, "As JSON");
  replay->callback([&chosen, options] { chosen = [options] { return run_replay(*options); }; });
}

}  // namespace headroom::ctl
