// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "base/state/json_integer.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"

#include <charconv>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

Row bold(std::initializer_list<std::string_view> titles) {
  Row row;
  for (const std::string_view title : titles)
    row.push_back({std::string(title), Colour::kBold});
  return row;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

Result<Json> slices_of(std::string_view status) {
  const Json json = Json::parse(status, nullptr, false);
  if (!json.is_object()) return failure("headroomd's status is not a JSON object");
  const auto slices = json.find("slices");
  if (slices == json.end() || !slices->is_object())
    return Json{{"mode", "off"}, {"slices", Json::array()}};
  return *slices;
}

std::string memory_text(const Json& amount) {
  const auto count = whole_number_of(amount);
  return count ? bytes(*count) : "-";
}
std::string cpus_text(const Json& amount) {
  return amount.is_number() ? fmt::format("{:.2f}", amount.get<double>()) : "-";
}
std::string tasks_text(const Json& amount) {
  const auto count = whole_number_of(amount);
  return count ? std::to_string(*count) : "-";
}

// The value as in the cgroup file, but bytes with a unit.
std::string value_of(std::string_view setting, const Json& value) {
  if (!value.is_string()) return "-";
  const auto text = value.get<std::string>();
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool number = error == std::errc() && end == text.data() + text.size();
  const bool of_bytes = setting.starts_with("memory.") || setting.starts_with("hugetlb.");
  return number && of_bytes && setting != "memory.oom.group" ? bytes(count) : printable(text);
}

std::size_t differing(const Json& slice) {
  std::size_t count = 0;
  for (const Json& setting : slice.at("settings"))
    count += setting.at("differs").get<bool>() ? 1 : 0;
  return count;
}

bool is_as_desired(const Json& slice) {
  return slice.at("exists").get<bool>() && differing(slice) == 0 && !slice.contains("error") &&
         !slice.contains("missing_controllers");
}

Cell state_of(const Json& slice) {
  if (!slice.at("exists").get<bool>()) return {"missing", Colour::kRed};
  if (!slice.at("over_limit").is_null()) return {"over its limit", Colour::kRed};
  if (const std::size_t count = differing(slice); count > 0)
    return {fmt::format("{} differ", count), Colour::kYellow};
  if (slice.contains("missing_controllers")) return {"lacks controllers", Colour::kYellow};
  return {"ok", Colour::kGreen};
}

Row slice_row(const Json& slice) {
  const Json& use = slice.at("usage");
  const Json share = slice.value("share", Json::object());
  const auto of = [&](const char* resource) { return share.value(resource, Json(nullptr)); };
  return {
      {text_of(slice, "slice")},     {text_of(slice, "role")},        {cpus_text(use.at("cpu"))},
      {cpus_text(of("cpu"))},        {memory_text(use.at("memory"))}, {memory_text(of("memory"))},
      {tasks_text(use.at("tasks"))}, {tasks_text(of("tasks"))},       state_of(slice)};
}

// Limits of huge pages are desired on every node, but most nodes do not have the controller.
bool is_absent(const Json& setting) {
  return text_of(setting, "setting").starts_with("hugetlb.") && setting.at("actual").is_null();
}

Row setting_row(const Json& slice, const Json& setting) {
  const auto name = text_of(setting, "setting");
  const bool differs = setting.at("differs").get<bool>();
  return {{text_of(slice, "slice")},
          {name},
          {value_of(name, setting.at("desired"))},
          {value_of(name, setting.at("actual")), differs ? Colour::kYellow : Colour::kNone},
          {tasks_text(setting.at("drift"))}};
}

std::string lowering(const Json& slice) {
  const Json state = slice.value("limit_lowering", Json::object());
  if (state.value("in_progress", false)) return ": reclaiming memory";
  return state.value("stalled", false) ? ": reclaim has not succeeded so far" : "";
}

std::string problem_lines(const Json& slices) {
  std::string text;
  if (const auto error = text_of(slices, "error"); !error.empty()) text += error + '\n';
  for (const Json& slice : slices.at("slices")) {
    const std::string path = text_of(slice, "slice");
    if (const auto error = text_of(slice, "error"); !error.empty())
      text += fmt::format("{}: {}\n", path, error);
    if (!slice.at("over_limit").is_null())
      text += fmt::format("{}: {} in use; memory.max is lowered when usage is lower{}\n", path,
                          memory_text(slice.at("over_limit")), lowering(slice));
    if (const auto removed = integer_of<std::int64_t>(slice.at("removed")); removed > 0)
      text += fmt::format("{}: was removed {} time{}\n", path, removed, removed == 1 ? "" : "s");
  }
  return text;
}

std::string render(const Json& slices, const Screen& screen) {
  std::string text = "mode " + text_of(slices, "mode") + '\n';
  std::vector<Row> rows{
      bold({"SLICE", "ROLE", "CPU", "OF", "MEMORY", "OF", "TASKS", "OF", "STATE"})};
  std::vector<Row> settings{bold({"SLICE", "SETTING", "DESIRED", "ACTUAL", "DRIFT"})};
  for (const Json& slice : slices.at("slices")) {
    rows.push_back(slice_row(slice));
    for (const Json& setting : slice.at("settings"))
      if (!is_absent(setting)) settings.push_back(setting_row(slice, setting));
  }
  if (rows.size() > 1) text += '\n' + table(rows, 2, screen) + '\n' + table(settings, 2, screen);
  if (const std::string lines = problem_lines(slices); !lines.empty()) text += '\n' + lines;
  return text;
}

bool all_as_desired(const Json& slices) {
  for (const Json& slice : slices.at("slices"))
    if (!is_as_desired(slice)) return false;
  return !slices.contains("error");
}

}  // namespace

Result<std::string> render_slices(std::string_view status, const Screen& screen) {
  const auto slices = slices_of(status);
  if (!slices) return tl::make_unexpected(slices.error());
  try {
    return render(*slices, screen);
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's status: ") + e.what());
  }
}

Result<std::string> slices_text(std::string_view status) {
  const auto slices = slices_of(status);
  if (!slices) return tl::make_unexpected(slices.error());
  return to_json_text(*slices) + "\n";
}

namespace {

int run(bool json) {
  const auto status = fetch_status();
  const auto text = !status ? Result<std::string>(failure(status.error().what))
                    : json  ? slices_text(*status)
                            : render_slices(*status, screen_of_stdout());
  if (!text) return print_error(CallError{CallError::Kind::kUnreachable, text.error().what});
  std::fputs(text->c_str(), stdout);
  return all_as_desired(*slices_of(*status)) ? 0 : kFailed;
}

}  // namespace

void add_slices(ArgumentParser& app, CliCommand& chosen) {
  const auto json = std::make_shared<bool>(false);
  auto* slices = app.add_subcommand("slices", "The node's slices: desired and actual values");
  slices->group(kInspectGroup);
  slices->add_flag("--json", *json, "As JSON");
  slices->callback([json, &chosen] { chosen = [json] { return run(*json); }; });
}

}  // namespace headroom::ctl
