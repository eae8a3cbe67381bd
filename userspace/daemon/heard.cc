// SPDX-License-Identifier: Apache-2.0
#include "daemon/heard.h"

#include "config/beside_kubelet.h"
#include "daemon/cpu_keeper.h"
#include "daemon/slice_terms.h"
#include "observe/kubelet_process.h"
#include "report/journal.h"

namespace headroom::daemon {
namespace {

using Capacity = std::function<Amounts(const config::Config&)>;

config::Heard heard(const config::CommandLine& line, const config::Surroundings& surroundings,
                    const Capacity& capacity) {
  config::Heard told = config::read(line, surroundings);
  if (told.complaints.empty() && told.config.slices.mode != SlicesMode::kOff)
    told.complaints = objections_to_reserves(told.config, capacity(told.config));
  if (told.complaints.empty()) told.complaints = cpu_objections(told.config);
  return told;
}

void warn(const config::Complaints& complaints, const char* consequence) {
  for (const config::Complaint& complaint : complaints)
    log::warning("{}", to_string(complaint));
  log::warning("{}", consequence);
}

}  // namespace

config::Heard heard_here(const config::CommandLine& line, Occasion occasion,
                         const Capacity& capacity) {
  config::Surroundings around{.kubelet_runs = observe::kubelet_runs()};
  config::Heard told = heard(line, around, capacity);
  if (told.complaints.empty()) return told;
  if (around.kubelet_runs) {
    around.kubelet_runs = false;
    config::Heard alone = heard(line, around, capacity);
    if (alone.complaints.empty()) {
      warn(told.complaints, "slices and CPUs are not observed beside the kubelet that runs here");
      return alone;
    }
  }
  if (!told.configz.empty() && occasion == Occasion::kStart) {
    around.heed_configz = false;
    config::Heard without = heard(line, around, capacity);
    if (without.complaints.empty()) {
      warn(told.complaints, "what the kubelet says of itself does not count");
      return without;
    }
  }
  return told;
}

}  // namespace headroom::daemon
