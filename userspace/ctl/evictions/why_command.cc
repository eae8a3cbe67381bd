// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/json_fields.h"
#include "ctl/common/print_error.h"
#include "ctl/evictions/audit_file.h"
#include "ctl/evictions/explain.h"
#include "report/eviction/old_record.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

struct WhyOptions {
  EvictionQuery query;
  std::string file;  // empty: ask headroomd
  bool json = false;
};

bool matches_pod(const Json& record, const std::string& name) {
  return name.empty() || name == pod_of(record) || name == text(at(record, {"pod", "name"})) ||
         name == text(at(record, {"pod", "uid"}));
}

// Newest first.
std::vector<Json> matching(const std::deque<std::string>& lines, const std::string& name) {
  std::vector<Json> found;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    Json record = Json::parse(*line, nullptr, false);
    report::rename_old_fields(record);
    if (record.is_object() && matches_pod(record, name)) found.push_back(std::move(record));
  }
  return found;
}

// Pods of several namespaces may have the same name; the namespace is required then.
std::set<std::string> pods_of(const std::vector<Json>& found) {
  std::set<std::string> pods;
  for (const Json& record : found)
    pods.insert(pod_of(record));
  return pods;
}

}  // namespace

Result<FoundEviction> find_eviction(const std::deque<std::string>& lines,
                                    const EvictionQuery& query) {
  if (lines.empty()) return failure("no eviction is on record");
  std::vector<Json> found = matching(lines, query.pod);
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
Json read_flight_recording(const Json& record, const std::filesystem::path& log) {
  const Json& name = at(record, {"flight_recording"});
  if (!name.is_string()) return nullptr;
  std::ifstream file(log.parent_path() / name.get<std::string>());
  Json flight_recording = Json::parse(file, nullptr, false);
  return flight_recording.is_object() ? flight_recording : Json();
}

// The record, in which the flight recording replaces its file's name.
Json with_flight_recording(const FoundEviction& found) {
  Json record = found.record;
  if (found.flight_recording.is_object()) record["flight_recording"] = found.flight_recording;
  return record;
}

void print(const FoundEviction& found, const WhyOptions& options) {
  if (options.json) {
    std::puts(
        with_flight_recording(found).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
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
