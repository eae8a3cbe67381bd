// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/json_fields.h"
#include "ctl/common/print_error.h"
#include "ctl/evictions/audit_file.h"
#include "report/eviction/old_record.h"

#include <headroom/signal.h>

#include <cstdio>
#include <memory>
#include <vector>

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
std::string cause_of(const Json& record) {
  const Json& taint = at(record, {"taint"});
  return text(at(record, {"signal"})) + " " + text(taint.is_null() ? at(record, {"kind"}) : taint);
}

bool frees_memory(const std::string& signal) {
  const auto known = signal_named(signal);
  return known && condition_of(*known) == Condition::kMemoryPressure;
}

// The pod's usage of the resource that was short: bytes, inodes or tasks. Older records have only
// the working set.
std::string usage_of(const Json& record, const std::string& signal) {
  const Json& usage = at(record, {"usage"});
  if (usage.is_null()) return bytes(integer(at(record, {"working_set"})));
  return used(signal, integer(usage));
}

// Returned resources are measured for memory only.
std::string returned(const Json& record, const std::string& signal) {
  return frees_memory(signal) || signal == "taint" ? bytes(integer(at(record, {"memory_returned"})))
                                                   : "-";
}

Row row_of(const Json& record) {
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

}  // namespace

std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable) {
  std::vector<Row> rows{titles()};
  for (const std::string& line : lines) {
    Json record = Json::parse(line, nullptr, false);
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

}  // namespace headroom::ctl
