// SPDX-License-Identifier: Apache-2.0
// What another configuration would have done to recorded nodes.
#include "base/human_readable.h"
#include "base/json_text.h"
#include "ctl/simulate/simulate.h"
#include "ctl/simulate/trace_files.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using recording::Replayed;
using Json = nlohmann::ordered_json;

bool ends_pod(const Decision& decision) {
  return decision.act == Act::kKill || decision.act == Act::kTerminate ||
         decision.act == Act::kPreStop;
}

// When each pod was first chosen.
using FirstChosen = std::map<std::uint64_t, Instant>;

FirstChosen chosen(const Replayed& replayed, std::vector<Decision> recording::ReplayedTurn::*side) {
  FirstChosen first;
  for (const recording::ReplayedTurn& turn : replayed.answers)
    for (const Decision& decision : turn.*side)
      if (ends_pod(decision)) first.try_emplace(decision.cgroup.value, turn.at);
  return first;
}

struct Comparison {
  std::size_t recorded = 0, replayed = 0;  // pods that are evicted
  std::size_t both = 0, spared = 0, added = 0;
  Duration earlier{0};  // mean of the pods that both evict; negative: later
};

Comparison compare(const Replayed& replayed) {
  const FirstChosen before = chosen(replayed, &recording::ReplayedTurn::recorded);
  const FirstChosen after = chosen(replayed, &recording::ReplayedTurn::replayed);
  Comparison found{.recorded = before.size(), .replayed = after.size()};
  Duration sum{0};
  for (const auto& [cgroup, at] : before) {
    const auto other = after.find(cgroup);
    if (other == after.end()) {
      ++found.spared;
      continue;
    }
    ++found.both;
    sum += at - other->second;
  }
  found.added = after.size() - found.both;
  if (found.both > 0) found.earlier = sum / static_cast<std::int64_t>(found.both);
  return found;
}

std::string difference(const Comparison& found) {
  if (found.both == 0) return "-";
  if (found.earlier == Duration::zero()) return "same";
  const bool earlier = found.earlier > Duration::zero();
  return report::human(earlier ? found.earlier : -found.earlier) +
         (earlier ? " earlier" : " later");
}

Row row_of(const std::string& name, Duration length, const Comparison& found) {
  return {{name},
          {report::human(length)},
          {std::to_string(found.recorded)},
          {std::to_string(found.replayed)},
          {std::to_string(found.spared), found.spared > 0 ? Colour::kGreen : Colour::kNone},
          {std::to_string(found.added), found.added > 0 ? Colour::kRed : Colour::kNone},
          {difference(found)}};
}

Result<ReplayedNode> replay_file(const std::string& file, const recording::PolicyOverride& policy) {
  auto bytes = read_text(file);
  if (!bytes) return tl::make_unexpected(bytes.error());
  auto tape = recording::TapeReader::open(std::move(*bytes));
  if (!tape) return failure(file + ": " + tape.error().what);
  auto replayed = recording::replay(*tape, policy);
  if (!replayed) return failure(file + ": " + replayed.error().what);
  if (replayed->last < replayed->first)
    return failure(file + ": the clock of the recording goes back");
  return ReplayedNode{file, tape->header().wall_offset, std::move(*replayed)};
}

}  // namespace

tl::expected<std::vector<ReplayedNode>, std::vector<std::string>> replay_nodes(
    const std::vector<std::string>& files, const recording::PolicyOverride& policy,
    std::size_t threads) {
  std::vector<std::optional<Result<ReplayedNode>>> results(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++)
      results[i] = replay_file(files[i], policy);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, files.size()); ++i)
    others.emplace_back(work);
  work();
  for (std::thread& thread : others)
    thread.join();
  std::vector<ReplayedNode> nodes;
  std::vector<std::string> errors;
  for (auto& result : results)
    if (*result)
      nodes.push_back(std::move(**result));
    else
      errors.push_back(result->error().what);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return nodes;
}

std::string render_nodes(const std::vector<ReplayedNode>& nodes, const Screen& screen) {
  std::vector<Row> rows{{{"RECORDING", Colour::kBold},
                         {"LENGTH", Colour::kBold},
                         {"EVICTED", Colour::kBold},
                         {"WOULD BE", Colour::kBold},
                         {"SPARED", Colour::kBold},
                         {"ADDED", Colour::kBold},
                         {"THE SAME PODS", Colour::kBold}}};
  Comparison sum;
  Duration length{0}, earlier{0};
  for (const ReplayedNode& node : nodes) {
    const Comparison found = compare(node.replayed);
    const Duration own = node.replayed.last - node.replayed.first;
    rows.push_back(row_of(printable(node.file), own, found));
    length += own;
    sum.recorded += found.recorded;
    sum.replayed += found.replayed;
    sum.both += found.both;
    sum.spared += found.spared;
    sum.added += found.added;
    earlier += found.earlier * static_cast<std::int64_t>(found.both);
  }
  if (sum.both > 0) sum.earlier = earlier / static_cast<std::int64_t>(sum.both);
  if (nodes.size() > 1) rows.push_back(row_of("all", length, sum));
  return table(rows, 1, screen);
}

std::string nodes_json(const std::vector<ReplayedNode>& nodes) {
  Json list = Json::array();
  for (const ReplayedNode& node : nodes) {
    const Comparison found = compare(node.replayed);
    list.push_back(
        {{"file", node.file},
         {"seconds", seconds_of(node.replayed.last - node.replayed.first)},
         {"turns", node.replayed.turns},
         {"lost", node.replayed.lost},
         {"truncated", node.replayed.cut_short},
         {"evicted", found.recorded},
         {"would_be_evicted", found.replayed},
         {"both", found.both},
         {"spared", found.spared},
         {"added", found.added},
         {"earlier_seconds", found.both ? Json(seconds_of(found.earlier)) : Json(nullptr)}});
  }
  return to_json_text(Json{{"recordings", std::move(list)}}) + '\n';
}

}  // namespace headroom::ctl
