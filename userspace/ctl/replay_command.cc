// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/json_text.h"
#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"
#include "judge/eviction/threshold/threshold_config.h"
#include "report/eviction/audit_line.h"
#include "report/eviction/messages.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

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
  std::ifstream file(name == "-" ? "/dev/stdin" : name, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return errno_failure("read " + name, errno ? errno : EISDIR);
  return bytes;
}

}  // namespace

Result<recording::TapeReader> open_recording(const std::string& file) {
  auto bytes = read_whole(file);
  if (!bytes) return tl::make_unexpected(bytes.error());
  auto tape = recording::TapeReader::open(std::move(*bytes));
  if (!tape) return failure(file + ": " + tape.error().what);
  return tape;
}

namespace {

void print(const recording::Replayed& replayed, std::int64_t wall_offset, bool json) {
  const std::string text = json ? replay_json(replayed, wall_offset)
                                : render_replay(replayed, wall_offset, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
}

int run_replay(const ReplayOptions& options) {
  auto tape = open_recording(options.file);
  if (!tape) return print_usage_error(tape.error());
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
  // A recording that was cut short can still replay identically: only what is lost in between
  // counts.
  const bool whole = replayed->lost == 0 && replayed->limits.lost == 0;
  const bool same = options.expect_same ? replayed->identical() && whole : replayed->same_acts();
  return same ? kSame : kDifferent;
}

using recording::Replayed;
using recording::ReplayedTurn;
using Json = nlohmann::ordered_json;

std::string pod_of(const Decision& decision) {
  return decision.pod ? printable(report::pod_name(*decision.pod)) : "the node";
}

std::string act_of(const Decision& decision) {
  return fmt::format("{} {}", report::name(decision.act), pod_of(decision));
}

bool same_act(const Decision& a, const Decision& b) {
  return a.act == b.act && a.cgroup == b.cgroup;
}

bool contains_act(const std::vector<Decision>& all, const Decision& one) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Decision& each) { return same_act(each, one); });
}

// When the other side first took the same action on the same pod; absent: never.
std::optional<Instant> first_time_on_other_side(const Replayed& replayed, const Decision& decision,
                                                std::vector<Decision> ReplayedTurn::*side) {
  for (const ReplayedTurn& answer : replayed.answers)
    if (contains_act(answer.*side, decision)) return answer.at;
  return std::nullopt;
}

std::string time_difference(Instant own_time, std::optional<Instant> other_time,
                            const char* where) {
  if (!other_time) return fmt::format("never {}", where);
  const Duration by = *other_time - own_time;
  if (by == Duration::zero()) return "";
  return fmt::format("{} {} {}", where, seconds(std::abs(static_cast<double>(by.count())) / 1e9),
                     by > Duration::zero() ? "later" : "earlier");
}

std::string since(const Replayed& replayed, Instant at) {
  return fmt::format("+{:.3f}s", seconds_of(at - replayed.first));
}

Row row(const Replayed& replayed, const ReplayedTurn& answer, const char* mark, Colour colour,
        const Decision& decision, std::string note) {
  std::string reason_text = report::reason_text(decision.reason, decision.pod.get());
  if (!note.empty()) reason_text += " (" + note + ")";
  return {
      {mark, colour}, {since(replayed, answer.at)}, {act_of(decision)}, {printable(reason_text)}};
}

void add_rows(const Replayed& replayed, const ReplayedTurn& answer, std::vector<Row>& rows) {
  for (const Decision& decision : answer.recorded)
    if (!contains_act(answer.replayed, decision))
      rows.push_back(
          row(replayed, answer, "-", Colour::kRed, decision,
              time_difference(answer.at,
                              first_time_on_other_side(replayed, decision, &ReplayedTurn::replayed),
                              "in the replay")));
  for (const Decision& decision : answer.replayed) {
    const bool both = contains_act(answer.recorded, decision);
    rows.push_back(row(
        replayed, answer, both ? (answer.identical ? "=" : "~") : "+",
        both ? Colour::kNone : Colour::kGreen, decision,
        both ? (answer.identical ? "" : "some numbers differ")
             : time_difference(
                   answer.at, first_time_on_other_side(replayed, decision, &ReplayedTurn::recorded),
                   "in the recording")));
  }
}

std::string heading(const Replayed& replayed, std::int64_t wall_offset) {
  const WallTime begun{std::chrono::duration_cast<WallTime::duration>(
      replayed.first.time_since_epoch() + Duration(wall_offset))};
  std::string line = fmt::format(
      "recorded {} for {}: {} turns, {} lost\n", rfc3339(begun).substr(0, 19),
      seconds(seconds_of(replayed.last - replayed.first)), replayed.turns, replayed.lost);
  if (replayed.cut_short) line += "the recording was cut short: later turns are unknown\n";
  return line;
}

std::string limits_line(const recording::ReplayedLimits& limits) {
  std::string line =
      fmt::format("{} plans for pods near their memory limits: {}", limits.plans,
                  limits.different == 0 ? "the same" : fmt::format("{} differ", limits.different));
  if (limits.lost > 0) line += fmt::format("; {} lost", limits.lost);
  return line + '\n';
}

std::string summary(const Replayed& replayed) {
  if (replayed.answers.empty() && replayed.limits.different == 0)
    return "no decisions, neither in the recording nor in the replay\n";
  if (replayed.identical()) return "identical\n";
  if (replayed.same_acts()) return "the same actions in the same turns; some numbers differ (~)\n";
  return "different: - only in the recording, + only in the replay\n";
}

Json decision_json(const Decision& decision) {
  return {{"action", report::name(decision.act)},
          {"pod", decision.pod ? Json(report::pod_name(*decision.pod)) : Json(nullptr)},
          {"uid", decision.pod ? Json(decision.pod->uid) : Json(nullptr)},
          {"cgroup", decision.cgroup.value},
          {"signal", cause_name(decision.reason)},
          {"available", decision.reason.available},
          {"threshold", decision.reason.threshold},
          {"reason", report::reason_text(decision.reason, decision.pod.get())},
          {"decided_ns", decision.decided_at.time_since_epoch().count()},
          {"deadline_ns", decision.deadline.time_since_epoch().count()}};
}

Json decisions_json(const std::vector<Decision>& decisions) {
  Json list = Json::array();
  for (const Decision& decision : decisions)
    list.push_back(decision_json(decision));
  return list;
}

}  // namespace

recording::PolicyOverride policy_override(const config::Config& config) {
  return [config](const Policy& recorded, ImageStorage images) {
    Policy policy = config.policy;
    if (!config.fastest_fill_configured) policy.fastest_fill = recorded.fastest_fill;
    policy.thresholds = with_containerfs(std::move(policy.thresholds), images).thresholds;
    policy.taints = recorded.taints;
    return policy;
  };
}

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

std::string render_replay(const Replayed& replayed, std::int64_t wall_offset,
                          const Screen& screen) {
  std::vector<Row> rows;
  for (const ReplayedTurn& answer : replayed.answers)
    add_rows(replayed, answer, rows);
  std::string text = heading(replayed, wall_offset);
  if (!rows.empty()) text += '\n' + table(rows, 4, screen) + '\n';
  if (replayed.extra_sweeps > 0)
    text +=
        fmt::format("{} times the pods were ranked by the latest recorded sweep, not a new one\n",
                    replayed.extra_sweeps);
  if (replayed.limits.plans + replayed.limits.lost > 0) text += limits_line(replayed.limits);
  return text + summary(replayed);
}

std::string replay_json(const Replayed& replayed, std::int64_t wall_offset) {
  Json answers = Json::array();
  for (const ReplayedTurn& answer : replayed.answers)
    answers.push_back({{"at_ns", answer.at.time_since_epoch().count()},
                       {"seconds", seconds_of(answer.at - replayed.first)},
                       {"same_actions", answer.same_acts},
                       {"identical", answer.identical},
                       {"recorded", decisions_json(answer.recorded)},
                       {"replayed", decisions_json(answer.replayed)}});
  const Json whole{{"first_ns", replayed.first.time_since_epoch().count()},
                   {"last_ns", replayed.last.time_since_epoch().count()},
                   {"wall_offset_ns", wall_offset},
                   {"turn_count", replayed.turns},
                   {"lost", replayed.lost},
                   {"extra_sweeps", replayed.extra_sweeps},
                   {"limit_plans",
                    {{"count", replayed.limits.plans},
                     {"different", replayed.limits.different},
                     {"lost", replayed.limits.lost}}},
                   {"truncated", replayed.cut_short},
                   {"same_actions", replayed.same_acts()},
                   {"identical", replayed.identical()},
                   {"turns", std::move(answers)}};
  return to_json_text(whole) + '\n';
}

}  // namespace headroom::ctl
