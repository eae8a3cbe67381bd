// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "judge/admission/taints.h"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

struct TaintOptions {
  std::vector<std::string> edits;  // none: list
  bool overwrite = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;

std::string printable_field(const Json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

// The two lists of a status document; `evicting` is empty if the document has none.
struct Lists {
  Json taints = Json::array();
  Json evicting = Json::array();
};
Result<Lists> lists_of(std::string_view status) {
  const Json json = Json::parse(status, nullptr, false);
  if (!json.is_object()) return failure("headroomd's status is not a JSON object");
  if (!json.contains("taints")) return failure("headroomd has not read the node yet; try again");
  return Lists{json.at("taints"), json.value("taint_evictions", Json::array())};
}

std::string time_left_text(const Json& pod) {
  const double left = pod.at("seconds").get<double>();
  return left > 0 ? "is evicted in " + seconds(left) : "is evicted now";
}

int edit(const TaintOptions& options) {
  std::size_t wrong = 0;
  for (const std::string& text : options.edits) {
    const auto parsed = parse_taint_edit(text);
    if (parsed) continue;
    ++wrong;
    std::fprintf(stderr, "headroomctl: %s\n", printable(parsed.error().what).c_str());
  }
  if (wrong > 0) return kUsage;
  const CallResult result = edit_taints(options.edits, options.overwrite);
  if (!result) return print_error(result.error());
  if (options.json) std::puts(result->c_str());
  return 0;
}

int list(bool json) {
  const auto status = fetch_status();
  const auto text =
      status ? (json ? taints_json(*status)
                     : render_taints(*status, Screen{.colour = screen_of_stdout().colour}))
             : Result<std::string>(failure(status.error().what));
  if (!text) return print_error(CallError{CallError::Kind::kUnreachable, text.error().what});
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

Result<std::string> render_taints(std::string_view status, const Screen& screen) {
  const auto lists = lists_of(status);
  if (!lists) return tl::make_unexpected(lists.error());
  try {
    std::vector<Row> rows{{{"TAINT", Colour::kBold}, {"FROM", Colour::kBold}}};
    for (const Json& taint : lists->taints)
      rows.push_back({{printable_field(taint, "taint")}, {printable_field(taint, "from")}});
    std::string text = rows.size() == 1 ? "no taints\n" : table(rows, 2, screen);
    for (const Json& pod : lists->evicting)
      text += fmt::format("{}/{} {}\n", printable_field(pod, "namespace"),
                          printable_field(pod, "name"), time_left_text(pod));
    return text;
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's status: ") + e.what());
  }
}

Result<std::string> taints_json(std::string_view status) {
  const auto lists = lists_of(status);
  if (!lists) return tl::make_unexpected(lists.error());
  const Json json{{"taints", lists->taints}, {"taint_evictions", lists->evicting}};
  return to_json_text(json) + "\n";
}

namespace {

int run_taint(const TaintOptions& options) {
  return options.edits.empty() ? list(options.json) : edit(options);
}

}  // namespace

void add_taint(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<TaintOptions>();
  auto* taint = app.add_subcommand("taint", "The node's taints: list, add and remove");
  taint->group(kChangeGroup);
  taint->add_option(
      "EDIT", options->edits,
      "KEY=VALUE:EFFECT or KEY:EFFECT adds, KEY:EFFECT- or KEY- removes; no EDIT: list");
  taint->add_flag("--overwrite", options->overwrite, "Replace another value of the same taint");
  taint->add_flag("--json", options->json, "As JSON");
  taint->callback([&chosen, options] { chosen = [options] { return run_taint(*options); }; });
}

}  // namespace headroom::ctl
