// SPDX-License-Identifier: Apache-2.0
#include "daemon/status/node_options.h"

#include "observe/node/capacity.h"

#include <sys/utsname.h>

#include <string>
#include <string_view>

namespace headroom::daemon {
namespace {

// As Go calls them, and so Kubernetes.
std::string architecture(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

std::string lower_case(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return name;
}

}  // namespace

NodeOptions node_options_of(const config::Config& config) {
  utsname host{};
  ::uname(&host);
  NodeOptions options;
  options.name = config.node_name.empty() ? lower_case(host.nodename) : config.node_name;
  options.labels = config.node_labels;
  // What the configuration says of these goes first.
  options.labels.emplace("kubernetes.io/hostname", lower_case(host.nodename));
  options.labels.emplace("kubernetes.io/os", "linux");
  options.labels.emplace("kubernetes.io/arch", architecture(host.machine));
  options.reserved = config.reserved;
  options.max_pods = config.max_pods;
  options.pods_per_core = config.pods_per_core;
  return options;
}

Amounts machine_amounts() {
  Amounts amounts;
  if (const auto cpus = observe::online_cpus()) amounts.cpu = MilliCpu{*cpus * 1000};
  amounts.huge_pages = observe::huge_page_pools();
  return amounts;
}

}  // namespace headroom::daemon
