// SPDX-License-Identifier: Apache-2.0
#include "ctl/status/api_line.h"

#include "ctl/common/json_fields.h"
#include "ctl/common/text_table.h"

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

std::string amount(const Json& number) {
  const auto known = integer(number);
  return known ? std::to_string(*known) : "?";
}

}  // namespace

std::string api_line(std::string_view document) {
  const Json status = Json::parse(document, nullptr, /*allow_exceptions=*/false);
  const Json& api = at(status, {"kubernetes", "api"});
  if (!api.is_object()) return "";
  std::string line = "API:      ";
  if (at(api, {"server"}).is_string())
    line += fmt::format("{}  {} evictions reported", text(at(api, {"server"})),
                        amount(at(api, {"reported"})));
  const auto waiting = integer(at(api, {"pending"})).value_or(0);
  if (waiting > 0)
    line += fmt::format(", {} waiting since {}", waiting, text(at(api, {"oldestPendingSince"})));
  for (const char* key : {"error", "auditLogError"})
    if (at(api, {key}).is_string()) line += (line.back() == ' ' ? "" : "; ") + text(at(api, {key}));
  return line + '\n';
}

}  // namespace headroom::ctl
