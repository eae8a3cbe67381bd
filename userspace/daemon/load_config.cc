// SPDX-License-Identifier: Apache-2.0
#include "daemon/load_config.h"

#include "base/log/journal.h"
#include "config/load/kubelet_coexistence.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/slices/slice_options.h"
#include "observe/node/kubelet_process.h"

namespace headroom::daemon {
namespace {

using Capacity = std::function<Amounts(const config::Config&)>;

config::LoadResult heard(const config::CommandLine& line, const config::LoadContext& surroundings,
                         const Capacity& capacity) {
  config::LoadResult told = config::read(line, surroundings);
  if (told.complaints.empty() && told.config.slices.mode != SlicesMode::kOff)
    told.complaints = objections_to_reserves(told.config, capacity(told.config));
  if (told.complaints.empty()) told.complaints = cpu_config_errors(told.config);
  return told;
}

void warn(const config::Complaints& complaints, const char* consequence) {
  for (const config::Complaint& complaint : complaints)
    log::warning("{}", to_string(complaint));
  log::warning("{}", consequence);
}

}  // namespace

config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const Capacity& capacity) {
  config::LoadContext around{.kubelet_runs = observe::kubelet_runs()};
  config::LoadResult told = heard(line, around, capacity);
  if (told.complaints.empty()) return told;
  if (around.kubelet_runs) {
    around.kubelet_runs = false;
    config::LoadResult alone = heard(line, around, capacity);
    if (alone.complaints.empty()) {
      warn(told.complaints, "slices and CPUs are not observed beside the kubelet that runs here");
      return alone;
    }
  }
  if (!told.configz.empty() && occasion == LoadReason::kStart) {
    around.use_configz = false;
    config::LoadResult without = heard(line, around, capacity);
    if (without.complaints.empty()) {
      warn(told.complaints, "what the kubelet says of itself does not count");
      return without;
    }
  }
  return told;
}

}  // namespace headroom::daemon
