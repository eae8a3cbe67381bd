// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/unit_name.h"

#include <algorithm>

namespace headroom::ctl {
namespace {

constexpr std::string_view kPrefix = "headroom-run-", kSuffix = ".service";

}  // namespace

std::string unit_name(const RunName& name) {
  std::string unit(kPrefix);
  unit += name.pod_namespace + "." + name.pod;
  if (!name.container.empty()) unit += "." + name.container;
  return unit.append(kSuffix);
}

std::optional<RunName> run_name(std::string_view unit) {
  if (!unit.starts_with(kPrefix) || !unit.ends_with(kSuffix)) return std::nullopt;
  unit.remove_prefix(kPrefix.size());
  unit.remove_suffix(kSuffix.size());
  const std::size_t first = unit.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(first + 1);
  const std::size_t second = std::min(rest.find('.'), rest.size());
  return RunName{.pod_namespace = std::string(unit.substr(0, first)),
                 .pod = std::string(rest.substr(0, second)),
                 .container = std::string(rest.substr(std::min(second + 1, rest.size())))};
}

bool is_dns_label(std::string_view text) {
  const auto inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && inner(text.front()) && inner(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return inner(c) || c == '-'; });
}

}  // namespace headroom::ctl
