// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/top_settings.h"

#include "base/atomic_file.h"
#include "base/json_text.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

std::filesystem::path absolute_variable(const char* name) {
  const char* const value = std::getenv(name);
  const std::filesystem::path path = value ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path top_settings_file() {
  std::filesystem::path folder = absolute_variable("XDG_CONFIG_HOME");
  if (folder.empty()) {
    folder = absolute_variable("HOME");
    if (folder.empty()) return {};
    folder /= ".config";
  }
  return folder / "headroom/top.json";
}

Result<TopSettings> parse_top_settings(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return failure("not a JSON object");
  TopSettings settings = default_top_settings();
  if (const auto columns = json.find("columns"); columns != json.end() && columns->is_array()) {
    settings.columns = {std::string(pod_columns()[0].name)};
    for (const nlohmann::json& column : *columns) {
      const std::string name = column.is_string() ? column.get<std::string>() : "";
      const auto& shown = settings.columns;
      if (pod_column(name) && std::find(shown.begin(), shown.end(), name) == shown.end())
        settings.columns.push_back(name);
    }
  }
  if (const auto sort = json.find("sort"); sort != json.end() && sort->is_string())
    if (pod_column(sort->get<std::string>())) settings.sort = sort->get<std::string>();
  if (const auto reversed = json.find("reversed"); reversed != json.end() && reversed->is_boolean())
    settings.reversed = reversed->get<bool>();
  return settings;
}

std::string top_settings_text(const TopSettings& settings) {
  return to_json_text(nlohmann::json{{"columns", settings.columns},
                                     {"sort", settings.sort},
                                     {"reversed", settings.reversed}},
                      1) +
         '\n';
}

Result<TopSettings> load_top_settings(const std::filesystem::path& file) {
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return default_top_settings();
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return errno_failure("read " + file.string(), errno);
  auto settings = parse_top_settings(text.str());
  if (!settings) return failure("read " + file.string() + ": " + settings.error().what);
  return settings;
}

Result<> save_top_settings(const std::filesystem::path& file, const TopSettings& settings) {
  if (file.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return failure("create " + file.parent_path().string() + ": " + error.message());
  return write_atomically(file, top_settings_text(settings));
}

}  // namespace headroom::ctl
