// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/manifest_from_options.h"

#include "base/json_text.h"
#include "ctl/run/pod_units.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Errors = std::vector<std::string>;

void check_label(const std::string& text, const char* option, Errors& errors) {
  if (!is_dns_label(text))
    errors.push_back(std::string(option) +
                     ": expected up to 63 lower-case letters, digits and "
                     "dashes, such as web-1, found \"" +
                     text + "\"");
}

Json amounts(const std::vector<std::string>& values, const char* option, Errors& errors) {
  Json json = Json::object();
  for (const std::string& value : values) {
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view pair = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const std::size_t at = pair.find('=');
      if (at == 0 || at == pair.npos || at + 1 == pair.size())
        errors.push_back(std::string(option) +
                         ": expected name=amount such as memory=256Mi, found \"" +
                         std::string(pair) + "\"");
      else
        json[std::string(pair.substr(0, at))] = std::string(pair.substr(at + 1));
    }
  }
  return json;
}

}  // namespace

tl::expected<std::string, std::vector<std::string>> manifest_from_options(const PodOptions& options,
                                                                          const std::string& uid) {
  Errors errors;
  check_label(options.name, "--name", errors);
  check_label(options.pod_namespace, "--namespace", errors);
  Json container{{"name", "main"}, {"command", options.command}};
  container["resources"] = {{"requests", amounts(options.requests, "--request", errors)},
                            {"limits", amounts(options.limits, "--limit", errors)}};
  if (options.command.empty()) errors.emplace_back("expected a command after --");
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  Json spec{{"priority", options.priority}, {"containers", Json::array({std::move(container)})}};
  if (options.grace_seconds) spec["terminationGracePeriodSeconds"] = *options.grace_seconds;
  const Json pod{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", options.name}, {"namespace", options.pod_namespace}, {"uid", uid}}},
      {"spec", std::move(spec)}};
  return to_json_text(pod, 1) + "\n";
}

}  // namespace headroom::ctl
