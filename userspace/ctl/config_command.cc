// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "config/load/effective_settings.h"
#include "config/schema.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/common/text_table.h"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

struct ConfigOptions {
  bool defaults = false;
  bool schema = false;
  bool json = false;
};

std::string text_of(const Json& json) {
  return to_json_text(json);
}

config::ConfigSetting setting_of(const Json& json) {
  config::ConfigSetting setting{.path = printable(json.at("path").get<std::string>()),
                                .entry = printable(json.value("entry", "")),
                                .value = text_of(json.at("value")),
                                .origin = printable(json.at("origin").get<std::string>())};
  if (json.contains("next")) {
    setting.next = text_of(json.at("next"));
    setting.next_origin = printable(json.at("nextOrigin").get<std::string>());
  }
  return setting;
}

int print_defaults(bool json) {
  const config::ConfigSettings settings = config::default_settings();
  if (!json) {
    std::fputs(config::as_yaml(settings).c_str(), stdout);
    return 0;
  }
  Json list = Json::array();
  for (const config::ConfigSetting& each : settings)
    list.push_back({{"path", each.path},
                    {"entry", each.entry},
                    {"value", Json::parse(each.value)},
                    {"origin", each.origin}});
  std::puts(text_of({{"version", HEADROOM_VERSION}, {"settings", std::move(list)}}).c_str());
  return 0;
}

int run_config(const ConfigOptions& options) {
  if (options.schema) {
    std::fputs(config::json_schema().c_str(), stdout);
    return 0;
  }
  if (options.defaults) return print_defaults(options.json);
  const CallResult result = fetch_config();
  if (!result) return print_error(Error{result.error().what});
  if (options.json) {
    std::puts(result->c_str());
    return 0;
  }
  const auto settings = parse_settings(*result);
  if (!settings) return print_error(settings.error());
  std::fputs(config::as_yaml(*settings).c_str(), stdout);
  return 0;
}

}  // namespace

Result<config::ConfigSettings> parse_settings(std::string_view result) {
  try {
    const Json document = Json::parse(result);
    config::ConfigSettings settings;
    for (const Json& each : document.at("settings"))
      settings.push_back(setting_of(each));
    return settings;
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

void add_config(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<ConfigOptions>();
  auto* config =
      app.add_subcommand("config", "The configuration in force, and the source of each value");
  config->group(kInspectGroup);
  config->add_flag("--defaults", options->defaults, "The defaults of all keys");
  config->add_flag("--schema", options->schema, "The JSON schema of headroom.yaml, for editors");
  config->add_flag("--json", options->json, "As JSON");
  config->callback([&chosen, options] { chosen = [options] { return run_config(*options); }; });
}

}  // namespace headroom::ctl
