// SPDX-License-Identifier: Apache-2.0
#include "ctl/evictions/explain_ranking.h"

#include "ctl/common/json_fields.h"

#include <map>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

// A longer ranking is cut; the record has all of it (--json).
constexpr std::size_t kMaxRows = 20;

const Json& candidates(const Json& record) {
  static const Json kNone = Json::array();
  const Json& ranking = at(record, {"ranking"});
  return ranking.is_array() ? ranking : kNone;
}

const Json& chosen_of(const Json& record) {
  static const Json kNull;
  for (const Json& candidate : candidates(record))
    if (at(candidate, {"selection"}) == "chosen") return candidate;
  return kNull;
}

bool by_request(const std::string& signal) {
  return signal != "pid.available";
}

// The first key on which an outranked pod differs from the chosen one.
std::string difference_from_chosen(const std::string& signal, const Json& candidate,
                                   const Json& chosen) {
  const auto over = integer(at(candidate, {"over_request"})),
             over_chosen = integer(at(chosen, {"over_request"}));
  const auto priority = integer(at(candidate, {"priority"})).value_or(0),
             priority_chosen = integer(at(chosen, {"priority"})).value_or(0);
  if (by_request(signal) && over && over_chosen && *over <= 0 && *over_chosen > 0)
    return "within its request";
  if (priority != priority_chosen)
    return fmt::format("priority {} is higher than {}", priority, priority_chosen);
  if (!over || !over_chosen) return "its usage is not known";
  if (*over == *over_chosen) return "equal to the chosen one, known later";
  if (!by_request(signal)) return "fewer tasks than the chosen one";
  return *over > 0 ? "less over its request than the chosen one"
                   : "further under its request than the chosen one";
}

std::string reason_of(const std::string& signal, const Json& candidate, const Json& chosen) {
  const std::string selection = text(at(candidate, {"selection"}));
  if (selection == "chosen") return "first of the pods that may be evicted";
  if (selection == "outranked")
    return chosen.is_null() ? "others suffice" : difference_from_chosen(signal, candidate, chosen);
  if (selection == "critical") return "static, mirror or of critical priority: never evicted";
  if (selection == "terminating") return "already on its way out";
  if (selection == "empty") return "no process left in it";
  if (selection == "nothing_to_free")
    return "killing it would free almost nothing: page cache stays";
  if (selection == "unknown") return "no reading: passed over while others have one";
  return "";
}

Colour colour_of(const std::string& selection) {
  if (selection == "chosen") return Colour::kRed;
  return selection == "outranked" ? Colour::kNone : Colour::kYellow;
}

Row row_of(std::size_t place, const std::string& signal, const Json& candidate,
           const Json& chosen) {
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

std::vector<std::string> rule_lines(const Json& record) {
  if (candidates(record).empty()) return {};
  const std::string signal = text(at(record, {"signal"}));
  if (!by_request(signal))
    return {"The kubelet's for tasks: lower priority first, then more tasks.",
            "Critical pods are never evicted; a pod without a reading only when no pod has one."};
  const char* what = signal.starts_with("memory") || signal.starts_with("allocatable") ? "memory"
                     : signal.starts_with("swap")     ? "memory and swap"
                     : signal.ends_with("inodesFree") ? "inodes"
                                                      : "local storage";
  return {fmt::format("The kubelet's for {}: pods that use more than requested first, then lower",
                      what),
          "priority, then those furthest over their request. The QoS class does not count.",
          "Critical pods are never evicted; a pod without a reading only when no pod has one."};
}

std::string ranking_table(const Json& record, const Screen& screen) {
  const std::string signal = text(at(record, {"signal"}));
  const Json& chosen = chosen_of(record);
  std::vector<Row> rows{titles()};
  for (const Json& candidate : candidates(record))
    if (rows.size() <= kMaxRows) rows.push_back(row_of(rows.size(), signal, candidate, chosen));
  if (rows.size() == 1) return "";
  std::string text = table(rows, 4, screen);
  if (candidates(record).size() > kMaxRows)
    text += fmt::format("… and {} more (--json)\n", candidates(record).size() - kMaxRows);
  return text;
}

std::vector<std::string> not_chosen_lines(const Json& record) {
  std::map<std::string, std::size_t> selections;
  for (const Json& candidate : candidates(record))
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

}  // namespace headroom::ctl
