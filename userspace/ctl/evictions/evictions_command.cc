// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/json_fields.h"
#include "ctl/common/print_error.h"
#include "ctl/evictions/audit_file.h"
#include "ctl/evictions/explain.h"
#include "report/eviction/audit_line.h"

#include <headroom/signal.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

struct EvictionsOptions {
  std::string file;       // empty: ask headroomd
  std::size_t last = 20;  // 0: all
  bool json = false;
};

Colour colour_of(const std::string& outcome) {
  if (outcome == "evicted") return Colour::kGreen;
  if (outcome == "failed" || outcome == "timed_out") return Colour::kRed;
  return Colour::kYellow;
}

// "memory.available hard", "taint dedicated=gpu:NoExecute".
std::string cause_of(const nlohmann::json& record) {
  const nlohmann::json& taint = at(record, {"taint"});
  return text(at(record, {"signal"})) + " " + text(taint.is_null() ? at(record, {"kind"}) : taint);
}

bool frees_memory(const std::string& signal) {
  const auto known = signal_named(signal);
  return known && condition_of(*known) == Condition::kMemoryPressure;
}

// The pod's usage of the resource that was short: bytes, inodes or tasks. Older records have only
// the working set.
std::string usage_of(const nlohmann::json& record, const std::string& signal) {
  const nlohmann::json& usage = at(record, {"usage"});
  if (usage.is_null()) return bytes(integer(at(record, {"working_set"})));
  return used(signal, integer(usage));
}

// Returned resources are measured for memory only.
std::string returned(const nlohmann::json& record, const std::string& signal) {
  return frees_memory(signal) || signal == "taint" ? bytes(integer(at(record, {"memory_returned"})))
                                                   : "-";
}

Row row_of(const nlohmann::json& record) {
  const std::string signal = text(at(record, {"signal"}));
  const std::string outcome = text(at(record, {"outcome"}));
  return {{text(at(record, {"time"})).substr(0, 19)},  // to the second
          {pod_of(record)},
          {text(at(record, {"pod", "qos"}))},
          {outcome, colour_of(outcome)},
          {cause_of(record)},
          {amount(signal, integer(at(record, {"available"})))},
          {amount(signal, integer(at(record, {"threshold"})))},
          {usage_of(record, signal)},
          {milliseconds(at(record, {"latency", "crossing_to_decision_ms"}))},
          {milliseconds(at(record, {"latency", "signal_to_exit_ms"}))},
          {returned(record, signal)}};
}

Row titles() {
  Row row;
  for (const char* title : {"TIME (UTC)", "POD", "QOS", "OUTCOME", "SIGNAL", "AVAILABLE", "LIMIT",
                            "USAGE", "CROSSED+", "GONE IN", "RETURNED"})
    row.push_back({title, Colour::kBold});
  return row;
}

void print_lines(const std::deque<std::string>& lines) {
  for (const std::string& line : lines)
    std::puts(line.c_str());
}

void print_table(const std::deque<std::string>& lines) {
  std::size_t unreadable = 0;
  const Screen screen{.colour = screen_of_stdout().colour};
  std::fputs(render_evictions(lines, screen, unreadable).c_str(), stdout);
  if (unreadable > 0)
    std::fprintf(stderr, "headroomctl: %zu lines are not eviction records\n", unreadable);
}

struct WhyOptions {
  EvictionQuery query;
  std::string file;  // empty: ask headroomd
  bool json = false;
};

bool matches_pod(const nlohmann::json& record, const std::string& name) {
  return name.empty() || name == pod_of(record) || name == text(at(record, {"pod", "name"})) ||
         name == text(at(record, {"pod", "uid"}));
}

// Newest first.
std::vector<nlohmann::json> matching(const std::deque<std::string>& lines,
                                     const std::string& name) {
  std::vector<nlohmann::json> found;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    nlohmann::json record = nlohmann::json::parse(*line, nullptr, false);
    report::rename_old_fields(record);
    if (record.is_object() && matches_pod(record, name)) found.push_back(std::move(record));
  }
  return found;
}

// Pods of several namespaces may have the same name; the namespace is required then.
std::set<std::string> pods_of(const std::vector<nlohmann::json>& found) {
  std::set<std::string> pods;
  for (const nlohmann::json& record : found)
    pods.insert(pod_of(record));
  return pods;
}

}  // namespace

std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable) {
  std::vector<Row> rows{titles()};
  for (const std::string& line : lines) {
    nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    report::rename_old_fields(record);
    if (record.is_object())
      rows.push_back(row_of(record));
    else
      ++unreadable;
  }
  return rows.size() == 1 ? "no evictions\n" : table(rows, 5, screen);
}

namespace {

int run_evictions(const EvictionsOptions& options) {
  const auto log = read_audit(options.file, options.last);
  if (!log) return print_error(log.error());
  if (options.json)
    print_lines(log->lines);
  else
    print_table(log->lines);
  return 0;
}

}  // namespace

void add_evictions(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<EvictionsOptions>();
  auto* evictions = app.add_subcommand("evictions", "The recorded evictions, oldest first");
  evictions->group(kInspectGroup);
  evictions->add_option("-n,--last", options->last, "How many; 0 is all")->capture_default_str();
  evictions->add_option("--file", options->file, "The audit log to read (default: headroomd's)");
  evictions->add_flag("--json", options->json, "The records as JSON, one per line");
  evictions->callback(
      [&chosen, options] { chosen = [options] { return run_evictions(*options); }; });
}

Result<FoundEviction> find_eviction(const std::deque<std::string>& lines,
                                    const EvictionQuery& query) {
  if (lines.empty()) return failure("no eviction is on record");
  std::vector<nlohmann::json> found = matching(lines, query.pod);
  if (found.empty())
    return failure(query.pod.empty() ? "no line of the log is an eviction's record"
                                     : "no eviction of " + printable(query.pod) +
                                           " is on record; headroomctl evictions lists them");
  if (const auto pods = pods_of(found); !query.pod.empty() && pods.size() > 1)
    return failure(fmt::format("{} is ambiguous: {}; give the namespace too", printable(query.pod),
                               fmt::join(pods, ", ")));
  if (query.nth_from_last > found.size())
    return failure(fmt::format("only {} evictions{} are on record", found.size(),
                               query.pod.empty() ? "" : " of " + printable(query.pod)));
  return FoundEviction{.record = std::move(found[query.nth_from_last - 1]),
                       .matches = found.size()};
}

namespace {

// Null if the recording is missing: only a limited number of recordings is kept.
nlohmann::json read_flight_recording(const nlohmann::json& record,
                                     const std::filesystem::path& log) {
  const nlohmann::json& name = at(record, {"flight_recording"});
  if (!name.is_string()) return nullptr;
  std::ifstream file(log.parent_path() / name.get<std::string>());
  nlohmann::json flight_recording = nlohmann::json::parse(file, nullptr, false);
  return flight_recording.is_object() ? flight_recording : nlohmann::json();
}

// The record, in which the flight recording replaces its file's name.
nlohmann::json with_flight_recording(const FoundEviction& found) {
  nlohmann::json record = found.record;
  if (found.flight_recording.is_object()) record["flight_recording"] = found.flight_recording;
  return record;
}

void print(const FoundEviction& found, const WhyOptions& options) {
  if (options.json) {
    std::puts(to_json_text(with_flight_recording(found), 2).c_str());
    return;
  }
  std::fputs(explain(found.record, found.flight_recording, screen_of_stdout()).c_str(), stdout);
  const std::string& pod = options.query.pod;
  if (!pod.empty() && found.matches > 1)
    std::printf("\n%zu evictions of %s are on record; -n 2 is the one before the last.\n",
                found.matches, printable(pod).c_str());
}

int run_why(const WhyOptions& options) {
  const auto log = read_audit(options.file, 0);
  if (!log) return print_error(log.error());
  auto found = find_eviction(log->lines, options.query);
  if (!found) return print_error(found.error());
  found->flight_recording = read_flight_recording(found->record, log->file);
  print(*found, options);
  return 0;
}

}  // namespace

void add_why(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<WhyOptions>();
  auto* why = app.add_subcommand(
      "why", "Explain one eviction: its cause, the ranking, the steps and times");
  why->group(kInspectGroup);
  why->add_option("POD", options->query.pod, "NAMESPACE/NAME, NAME or UID (default: any)");
  why->add_option("-n,--back", options->query.nth_from_last, "Which one, counted from the last")
      ->capture_default_str()
      ->check_positive();
  why->add_option("--file", options->file, "The audit log to read (default: headroomd's)");
  why->add_flag("--json", options->json, "Print the record as JSON");
  why->callback([&chosen, options] { chosen = [options] { return run_why(*options); }; });
}

}  // namespace headroom::ctl
