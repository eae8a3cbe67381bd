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

config::LoadResult load_and_check(const config::CommandLine& line,
                                  const config::LoadContext& context, const Capacity& capacity) {
  config::LoadResult loaded = config::read(line, context);
  if (loaded.diagnostics.empty() && loaded.config.slices.mode != SlicesMode::kOff)
    loaded.diagnostics = reservation_errors(loaded.config, capacity(loaded.config));
  if (loaded.diagnostics.empty()) loaded.diagnostics = cpu_config_errors(loaded.config);
  return loaded;
}

void warn(const config::Diagnostics& diagnostics, const char* consequence) {
  for (const config::Diagnostic& diagnostic : diagnostics)
    log::warning("{}", to_string(diagnostic));
  log::warning("{}", consequence);
}

}  // namespace

config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const Capacity& capacity, const std::filesystem::path& run_dir) {
  config::LoadContext context{.kubelet_runs = observe::kubelet_runs(), .run_dir = run_dir};
  config::LoadResult loaded = load_and_check(line, context, capacity);
  if (loaded.diagnostics.empty()) return loaded;
  if (context.kubelet_runs) {
    context.kubelet_runs = false;
    config::LoadResult without_kubelet = load_and_check(line, context, capacity);
    if (without_kubelet.diagnostics.empty()) {
      warn(loaded.diagnostics,
           "slices and CPUs are not observed beside the kubelet that runs here");
      return without_kubelet;
    }
  }
  if (!loaded.configz.empty() && occasion == LoadReason::kStart) {
    context.use_configz = false;
    config::LoadResult without_configz = load_and_check(line, context, capacity);
    if (without_configz.diagnostics.empty()) {
      warn(loaded.diagnostics, "what the kubelet says of itself does not count");
      return without_configz;
    }
  }
  return loaded;
}

}  // namespace headroom::daemon
