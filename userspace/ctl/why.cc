// SPDX-License-Identifier: Apache-2.0
#include "ctl/why.h"

#include "ctl/audit_file.h"
#include "ctl/complain.h"
#include "ctl/explain.h"
#include "ctl/record_fields.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

struct WhyOptions {
  Question question;
  std::string file;  // empty: ask headroomd which
  bool json = false;
};

bool answers_to(const Json& record, const std::string& name) {
  return name.empty() || name == pod_of(record) || name == text(at(record, {"pod", "name"})) ||
         name == text(at(record, {"pod", "uid"}));
}

// Newest first.
std::vector<Json> matching(const std::deque<std::string>& lines, const std::string& name) {
  std::vector<Json> found;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    Json record = Json::parse(*line, nullptr, false);
    if (record.is_object() && answers_to(record, name)) found.push_back(std::move(record));
  }
  return found;
}

// A name alone may be borne in several namespaces; then only a fuller one will do.
std::set<std::string> pods_of(const std::vector<Json>& found) {
  std::set<std::string> pods;
  for (const Json& record : found)
    pods.insert(pod_of(record));
  return pods;
}

}  // namespace

Result<Found> find_eviction(const std::deque<std::string>& lines, const Question& question) {
  if (lines.empty()) return failure("no eviction is on record");
  std::vector<Json> found = matching(lines, question.pod);
  if (found.empty())
    return failure(question.pod.empty() ? "no line of the log is an eviction's record"
                                        : "no eviction of " + printable(question.pod) +
                                              " is on record; headroomctl evictions lists them");
  if (const auto pods = pods_of(found); !question.pod.empty() && pods.size() > 1)
    return failure(fmt::format("{} may be any of {}: name its namespace as well",
                               printable(question.pod), fmt::join(pods, ", ")));
  if (question.back > found.size())
    return failure(fmt::format("only {} evictions{} are on record", found.size(),
                               question.pod.empty() ? "" : " of " + printable(question.pod)));
  return Found{.record = std::move(found[question.back - 1]), .matches = found.size()};
}

namespace {

// Null where there is none: it may be older than those that are kept.
Json minute_of(const Json& record, const std::filesystem::path& log) {
  const Json& name = at(record, {"minute"});
  if (!name.is_string()) return nullptr;
  std::ifstream file(log.parent_path() / name.get<std::string>());
  Json minute = Json::parse(file, nullptr, false);
  return minute.is_object() ? minute : Json();
}

// The record, and in it the minute instead of its file's name.
Json whole(const Found& found) {
  Json record = found.record;
  if (found.minute.is_object()) record["minute"] = found.minute;
  return record;
}

void print(const Found& found, const WhyOptions& options) {
  if (options.json) {
    std::puts(whole(found).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::fputs(explain(found.record, found.minute, screen_of_stdout()).c_str(), stdout);
  const std::string& pod = options.question.pod;
  if (!pod.empty() && found.matches > 1)
    std::printf("\n%zu evictions of %s are on record; -n 2 is the one before the last.\n",
                found.matches, printable(pod).c_str());
}

int run_why(const WhyOptions& options) {
  const auto log = read_audit(options.file, 0);
  if (!log) return complain(log.error());
  auto found = find_eviction(log->lines, options.question);
  if (!found) return complain(found.error());
  found->minute = minute_of(found->record, log->file);
  print(*found, options);
  return 0;
}

}  // namespace

void add_why(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<WhyOptions>();
  auto* why =
      app.add_subcommand("why", "One eviction explained: what led to it, who else, how long");
  why->group(kLooking);
  why->add_option("POD", options->question.pod, "NAMESPACE/NAME, NAME or UID (default: any)");
  why->add_option("-n,--back", options->question.back, "Which, counted from the last")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  why->add_option("--file", options->file, "The audit log to read (default: headroomd's)");
  why->add_flag("--json", options->json, "The record as it is");
  why->callback([&chosen, options] { chosen = [options] { return run_why(*options); }; });
}

}  // namespace headroom::ctl
