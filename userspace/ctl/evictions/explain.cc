// SPDX-License-Identifier: Apache-2.0
#include "ctl/evictions/explain.h"

#include "ctl/common/json_fields.h"
#include "ctl/evictions/explain_flight_recording.h"

#include <headroom/signal.h>

#include <map>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

// A longer ranking is cut; the record has all of it (--json).
constexpr std::size_t kMaxRows = 20;

const nlohmann::json& candidates(const nlohmann::json& record) {
  static const nlohmann::json kNone = nlohmann::json::array();
  const nlohmann::json& ranking = at(record, {"ranking"});
  return ranking.is_array() ? ranking : kNone;
}

const nlohmann::json& chosen_of(const nlohmann::json& record) {
  static const nlohmann::json kNull;
  for (const nlohmann::json& candidate : candidates(record))
    if (at(candidate, {"selection"}) == "chosen") return candidate;
  return kNull;
}

bool by_request(const std::string& signal) {
  return signal != "pid.available";
}

bool is_of_cpus(const std::string& signal) {
  return signal == name(Signal::kCpuPressure);
}

// The first key on which an outranked pod differs from the chosen one.
std::string difference_from_chosen(const std::string& signal, const nlohmann::json& candidate,
                                   const nlohmann::json& chosen) {
  const auto over = integer(at(candidate, {"over_request"})),
             over_chosen = integer(at(chosen, {"over_request"}));
  const auto priority = integer(at(candidate, {"priority"})).value_or(0),
             priority_chosen = integer(at(chosen, {"priority"})).value_or(0);
  if (by_request(signal) && !is_of_cpus(signal) && over && over_chosen && *over <= 0 &&
      *over_chosen > 0)
    return "within its request";
  if (priority != priority_chosen)
    return fmt::format("priority {} is higher than {}", priority, priority_chosen);
  if (!over || !over_chosen) return "its usage is not known";
  if (*over == *over_chosen) return "equal to the chosen one, known later";
  if (!by_request(signal)) return "fewer tasks than the chosen one";
  return *over > 0 ? "less over its request than the chosen one"
                   : "further under its request than the chosen one";
}

std::string reason_of(const std::string& signal, const nlohmann::json& candidate,
                      const nlohmann::json& chosen) {
  const std::string selection = text(at(candidate, {"selection"}));
  if (selection == "chosen") return "first of the pods that may be evicted";
  if (selection == "outranked")
    return chosen.is_null() ? "others suffice" : difference_from_chosen(signal, candidate, chosen);
  if (selection == "critical") return "static, mirror or of critical priority: never evicted";
  if (selection == "terminating") return "already on its way out";
  if (selection == "empty") return "no process left in it";
  if (selection == "nothing_to_free" && is_of_cpus(signal))
    return "within its request, or its use does not explain the waits";
  if (selection == "nothing_to_free")
    return "killing it would free almost nothing: page cache stays";
  if (selection == "unknown" && is_of_cpus(signal)) return "no reading: never chosen";
  if (selection == "unknown") return "no reading: passed over while others have one";
  return "";
}

Colour colour_of(const std::string& selection) {
  if (selection == "chosen") return Colour::kRed;
  return selection == "outranked" ? Colour::kNone : Colour::kYellow;
}

Row row_of(std::size_t place, const std::string& signal, const nlohmann::json& candidate,
           const nlohmann::json& chosen) {
  const std::string selection = text(at(candidate, {"selection"}));
  return {{std::to_string(place)},
          {text(at(candidate, {"namespace"})) + "/" + text(at(candidate, {"name"}))},
          {selection, colour_of(selection)},
          {reason_of(signal, candidate, chosen)},
          {used(signal, integer(at(candidate, {"usage"})))},
          {by_request(signal) ? used(signal, integer(at(candidate, {"request"}))) : "-"},
          {std::to_string(integer(at(candidate, {"priority"})).value_or(0))}};
}

Row titles() {
  Row row;
  for (const char* title : {"#", "POD", "SELECTION", "REASON", "USAGE", "REQUEST", "PRIORITY"})
    row.push_back({title, Colour::kBold});
  return row;
}

}  // namespace

std::vector<std::string> rule_lines(const nlohmann::json& record) {
  if (candidates(record).empty()) return {};
  const std::string signal = text(at(record, {"signal"}));
  if (!by_request(signal))
    return {"The kubelet's for tasks: lower priority first, then more tasks.",
            "Critical pods are never evicted; a pod without a reading only when no pod has one."};
  if (is_of_cpus(signal))
    return {
        "Of the pods whose CPU use above their request explains that others wait: lower priority",
        "first, then those furthest over their request. One pod at a time.",
        "Critical pods are never evicted, and neither are pods without a reading."};
  const char* what = signal.starts_with("memory") || signal.starts_with("allocatable") ? "memory"
                     : signal.starts_with("swap")     ? "memory and swap"
                     : signal.ends_with("inodesFree") ? "inodes"
                                                      : "local storage";
  return {fmt::format("The kubelet's for {}: pods that use more than requested first, then lower",
                      what),
          "priority, then those furthest over their request. The QoS class does not count.",
          "Critical pods are never evicted; a pod without a reading only when no pod has one."};
}

std::string ranking_table(const nlohmann::json& record, const Screen& screen) {
  const std::string signal = text(at(record, {"signal"}));
  const nlohmann::json& chosen = chosen_of(record);
  std::vector<Row> rows{titles()};
  for (const nlohmann::json& candidate : candidates(record))
    if (rows.size() <= kMaxRows) rows.push_back(row_of(rows.size(), signal, candidate, chosen));
  if (rows.size() == 1) return "";
  std::string text = table(rows, 4, screen);
  if (candidates(record).size() > kMaxRows)
    text += fmt::format("… and {} more (--json)\n", candidates(record).size() - kMaxRows);
  return text;
}

std::vector<std::string> not_chosen_lines(const nlohmann::json& record) {
  std::map<std::string, std::size_t> selections;
  for (const nlohmann::json& candidate : candidates(record))
    if (at(candidate, {"selection"}) != "chosen") ++selections[text(at(candidate, {"selection"}))];
  if (selections.empty()) return {};
  std::size_t all = 0;
  std::vector<std::string> parts;
  for (const auto& [selection, count] : selections) {
    parts.push_back(fmt::format("{} {}", count, selection));
    all += count;
  }
  return {fmt::format("{} {}: {}", all, all == 1 ? "pod" : "pods", fmt::join(parts, ", "))};
}

namespace {

// --- what happened -----------------------------------------------------------------------------

std::string outcome_phrase(const nlohmann::json& record) {
  const std::string outcome = text(at(record, {"outcome"}));
  const nlohmann::json& unit = at(record, {"unit"});
  const bool whole = !unit.is_string() || unit == "pod";
  if (outcome == "evicted") return whole ? "was evicted" : "was killed";
  if (outcome == "timed_out") return "was to be evicted and still has processes";
  if (outcome == "already_gone") return "was gone before it could be evicted";
  if (outcome == "failed") return "could not be evicted: " + text(at(record, {"error"}));
  if (outcome == "would_evict") return "would have been evicted (mode: observe)";
  return "was decided on: " + outcome;
}

std::string target_text(const nlohmann::json& record) {
  const nlohmann::json& unit = at(record, {"unit"});
  const bool part = unit.is_string() && unit != "pod";
  return part ? "a " + text(unit) + " of " + pod_of(record) : pod_of(record);
}

std::string headline(const nlohmann::json& record) {
  const std::string qos = text(at(record, {"pod", "qos"}));
  return fmt::format("{} ({}priority {}) {}, {} UTC", target_text(record),
                     qos.size() > 1 ? qos + ", " : "",
                     integer(at(record, {"pod", "priority"})).value_or(0), outcome_phrase(record),
                     text(at(record, {"time"})).substr(0, 23));
}

// --- why ---------------------------------------------------------------------------------------

std::string crossing(const nlohmann::json& record) {
  const std::string seen = milliseconds(at(record, {"latency", "first_seen_to_decision_ms"}));
  const std::string clear = milliseconds(at(record, {"latency", "crossing_to_decision_ms"}));
  if (clear == "-")
    return fmt::format(
        "It was first seen below {} before the decision, and never above since headroomd started.",
        seen);
  return fmt::format(
      "It was last seen above it {} before the decision and first seen below {} before it.", clear,
      seen);
}

std::vector<std::string> threshold_lines(const nlohmann::json& record) {
  const std::string signal = text(at(record, {"signal"}));
  return {fmt::format("{} was {} of {}, below its {} threshold of {}.", signal,
                      amount(signal, integer(at(record, {"available"}))),
                      amount(signal, integer(at(record, {"capacity"}))), text(at(record, {"kind"})),
                      amount(signal, integer(at(record, {"threshold"})))),
          crossing(record)};
}

std::vector<std::string> why_lines(const nlohmann::json& record) {
  if (const nlohmann::json& taint = at(record, {"taint"}); taint.is_string())
    return {fmt::format("The node is tainted {} and the pod does not tolerate it, or no longer.",
                        text(taint))};
  if (text(at(record, {"kind"})) == "stuck")
    return {fmt::format("It was stuck at its own memory.high of {}.",
                        bytes(integer(at(record, {"threshold"}))))};
  if (text(at(record, {"kind"})) == "limit")
    return {fmt::format("It used more of its local storage than its limit of {} ({}).",
                        bytes(integer(at(record, {"threshold"}))), text(at(record, {"signal"})))};
  return threshold_lines(record);
}

// --- the part that was killed, and the steps before the eviction ------------------------------

std::vector<std::string> part_lines(const nlohmann::json& record) {
  const nlohmann::json& part = at(record, {"target"});
  if (!part.is_object()) return {};
  std::string what = "One container of the pod was killed, not the pod";
  if (at(part, {"oom_group"}) == true)
    what =
        "One cgroup of the pod was killed as a whole, because of its memory.oom.group or because "
        "it is one pid namespace";
  if (const auto pid = integer(at(part, {"pid"})))
    what = fmt::format("Its largest process was killed, not the pod: {} ({})", *pid,
                       text(at(part, {"comm"})));
  const std::string path = text(at(record, {"cgroup", "path"}));
  std::vector<std::string> lines{what + "."};
  if (path.size() > 1) lines.push_back(path);
  return lines;
}

std::vector<std::string> ladder_lines(const nlohmann::json& record) {
  const nlohmann::json& ladder = at(record, {"ladder"});
  if (!ladder.is_object()) return {};
  std::vector<std::string> steps;
  const auto add_step = [&](const char* step, const char* says) {
    if (const auto times = integer(at(ladder, {step})))
      steps.push_back(fmt::format("{} ({}×)", says, *times));
  };
  add_step("reclaim", "page cache was reclaimed");
  add_step("squeeze", "BestEffort pods were limited to their usage");
  add_step("relax", "a memory.high was raised");
  add_step("restore", "a memory.high was restored");
  return {fmt::format("In the minute before: {}.", fmt::join(steps, ", "))};
}

// --- the age of the inputs ---------------------------------------------------------------------

// The age, in milliseconds, of the oldest usage by which a pod was ranked.
std::optional<double> oldest_usage(const nlohmann::json& record) {
  std::optional<double> oldest;
  const nlohmann::json& ranking = at(record, {"ranking"});
  if (!ranking.is_array()) return oldest;
  for (const nlohmann::json& candidate : ranking)
    if (const nlohmann::json& age = at(candidate, {"age_ms"}); age.is_number())
      oldest = std::max(oldest.value_or(0), age.get<double>());
  return oldest;
}

std::vector<std::string> input_age_lines(const nlohmann::json& record) {
  const nlohmann::json& sampled = at(record, {"latency", "sample_to_decision_ms"});
  if (!sampled.is_number()) return {};
  std::string line = fmt::format("{} was read {} before the decision", text(at(record, {"signal"})),
                                 milliseconds(sampled));
  if (const auto oldest = oldest_usage(record))
    line += *oldest > 0
                ? fmt::format(", the pods' usage up to {} before it", seconds(*oldest / 1e3))
                : ", the pods' usage on the pass that was judged";
  return {line + "."};
}

// --- predicted and returned memory -------------------------------------------------------------

std::vector<std::string> memory_lines(const nlohmann::json& record) {
  const nlohmann::json& predicted = at(record, {"predicted"});
  if (!predicted.is_object()) return {};
  const nlohmann::json& release = at(predicted, {"release"});
  // For the other signals, `release` counts tasks, inodes or bytes of storage.
  const std::string signal = text(at(record, {"signal"}));
  const auto known = signal_named(signal);
  const bool memory_signal = known && wants_memory(*known);
  const bool sized =
      memory_signal && release.is_number() && at(predicted, {"release_ms"}).is_number();
  const std::string memory = bytes(integer(sized ? release : at(predicted, {"memory"})));
  const std::string returned = bytes(integer(at(record, {"memory_returned"})));
  const std::string took = milliseconds(at(record, {"latency", "signal_to_exit_ms"}));
  std::vector<std::string> lines;
  if (const nlohmann::json& within = at(predicted, {"within_ms"}); within.is_number())
    lines.push_back(fmt::format("expected {} of memory within {}", memory, milliseconds(within)));
  else
    lines.push_back(fmt::format("expected {} of memory, after a grace of at most {}", memory,
                                milliseconds(at(predicted, {"grace_ms"}))));
  lines.push_back(took == "-" ? fmt::format("returned {}", returned)
                              : fmt::format("returned {} in {}", returned, took));
  return lines;
}

std::vector<std::string> kubelet_lines(const nlohmann::json& record) {
  const nlohmann::json& kubelet = at(record, {"kubelet"});
  if (!kubelet.is_object()) return {};
  const nlohmann::json& choice = at(kubelet, {"choice"});
  const bool same = at(kubelet, {"same_choice"}) == true;
  const bool itself = same && at(choice, {"uid"}) == at(record, {"pod", "uid"});
  const std::string kubelet_target = choice.is_null() ? "no pod"
                                     : itself
                                         ? "the same pod"
                                         : pod_of(nlohmann::json{{"pod", choice}}) +
                                               (same ? ", evicted in the same turn" : " instead");
  return {fmt::format("Its ten-second loop would have acted {} later, with usage {} older, on {}.",
                      milliseconds(at(kubelet, {"later_by_ms"})),
                      milliseconds(at(kubelet, {"samples_age_ms"})), kubelet_target)};
}

// What memory and swap could still take, by which memory.available was counted (swapAware).
std::vector<std::string> swap_lines(const nlohmann::json& record) {
  const nlohmann::json& swap = at(record, {"swap"});
  if (at(swap, {"in_force"}) != true) return {};
  const auto amount = [&](const char* key) { return bytes(integer(at(swap, {key}))); };
  std::vector<std::string> lines{
      fmt::format("MemAvailable {}; free swap gains {}, of which the next second fills {};",
                  amount("memory"), amount("gain"), amount("filling")),
      fmt::format("by the kubelet's rule {} were available", amount("kubelet"))};
  const nlohmann::json& stalled = at(swap, {"stalled_ratio"});
  if (text(at(swap, {"bound"})) != "thrashing" || !stalled.is_number()) return lines;
  lines.push_back(
      fmt::format("the node thrashed, so free swap gained nothing: all tasks waited for {:.0f}% "
                  "of the last seconds",
                  100 * stalled.get<double>()));
  if (const nlohmann::json& pods = at(swap, {"pods_stalled_ratio"}); pods.is_number())
    lines.push_back(
        fmt::format("and a pod within its memory request for {:.0f}%", 100 * pods.get<double>()));
  return lines;
}

// --- the steps ---------------------------------------------------------------------------------

struct Step {
  const char* from;
  const char* to;
  const char* says;
};
// Pairs of instants in the record; a pair is printed if both are known.
constexpr Step kSteps[] = {
    {"last_clear", "first_crossed", "the threshold is crossed, somewhere in between"},
    {"first_crossed", "sampled", "it stays crossed until its grace is over"},
    {"sampled", "decided", "the reading is judged, the pods are ranked"},
    {"decided", "terminated", "SIGTERM is sent"},
    {"terminated", "killed", "grace, then SIGKILL"},
    {"decided", "killed", "SIGKILL is sent"},
    {"killed", "ended", "the kernel takes the processes down"},
    {"terminated", "ended", "the processes end"},
};

std::optional<std::int64_t> instant(const nlohmann::json& record, const char* name) {
  return integer(at(record, {"instants_ns", name}));
}

// A kill after a SIGTERM is already described by the steps decided → terminated → killed.
bool covered_by_other_steps(const nlohmann::json& record, const Step& step) {
  const std::string_view from = step.from, to = step.to;
  if (from == "decided" && to == "killed") return instant(record, "terminated").has_value();
  if (from == "terminated" && to == "ended") return instant(record, "killed").has_value();
  return false;
}

std::vector<std::string> step_lines(const nlohmann::json& record) {
  std::vector<std::string> lines;
  for (const Step& step : kSteps) {
    const auto from = instant(record, step.from), to = instant(record, step.to);
    if (!from || !to || covered_by_other_steps(record, step)) continue;
    // The sample may be older than the turn that first found the signal below its threshold: then
    // there was no wait.
    if (*from >= *to && std::string_view(step.from) == "first_crossed") continue;
    lines.push_back(
        fmt::format("{:>7}  {}", seconds(static_cast<double>(*to - *from) / 1e9), step.says));
  }
  return lines;
}

// --- the page ----------------------------------------------------------------------------------

void section(std::string& page, std::string_view title, const std::vector<std::string>& lines,
             const Screen& screen) {
  if (lines.empty()) return;
  page += '\n';
  for (std::size_t i = 0; i < lines.size(); ++i)
    page += colourise(fmt::format("{:<10}", i == 0 ? title : ""), Colour::kBold, screen) +
            lines[i] + '\n';
}

}  // namespace

std::string explain(const nlohmann::json& record, const nlohmann::json& flight_recording,
                    const Screen& screen) {
  std::string page = colourise(headline(record), Colour::kBold, screen) + '\n';
  section(page, "Why", why_lines(record), screen);
  section(page, "Part", part_lines(record), screen);
  section(page, "Ladder", ladder_lines(record), screen);
  section(page, "Inputs", input_age_lines(record), screen);
  section(page, "Rule", rule_lines(record), screen);
  if (const std::string ranking = ranking_table(record, screen); !ranking.empty())
    page += '\n' + ranking;
  section(page, "Spared", not_chosen_lines(record), screen);
  section(page, "Kubelet", kubelet_lines(record), screen);
  section(page, "Memory", memory_lines(record), screen);
  section(page, "Swap", swap_lines(record), screen);
  section(page, "Steps", step_lines(record), screen);
  if (const std::string recording_text =
          render_flight_recording(flight_recording, text(at(record, {"signal"})), screen);
      !recording_text.empty())
    page += '\n' + recording_text;
  if (const std::string message = text(at(record, {"message"})); message.size() > 1)
    section(page, "Message", {message}, screen);
  return page;
}

}  // namespace headroom::ctl
