// SPDX-License-Identifier: Apache-2.0
#include "act/units/runtime_settings.h"

#include <unistd.h>

#include <fstream>

namespace headroom::act {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& settings, const std::string& unit) {
  return settings / (unit + ".d");
}

std::string file_of(const std::string& property) {
  return "50-" + property + ".conf";
}

}  // namespace

std::optional<std::string> runtime_setting(const std::filesystem::path& settings,
                                           const std::string& unit, const std::string& property) {
  std::ifstream file(directory_of(settings, unit) / file_of(property));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(property + "=")) return line.substr(property.size() + 1);
  return std::nullopt;
}

void remove_runtime_settings(const std::filesystem::path& settings, const std::string& unit,
                             std::initializer_list<const char*> properties) {
  const std::filesystem::path directory = directory_of(settings, unit);
  for (const char* property : properties)
    ::unlink((directory / file_of(property)).c_str());
  ::rmdir(directory.c_str());
}

}  // namespace headroom::act
