// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices/slice_options.h"

#include "daemon/config/running_config.h"
#include "daemon/status/node_status_tracker.h"
#include "judge/allocatable/node_allocatable.h"
#include "observe/node/node_source.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

Amounts capacity_now(const config::Config& config) {
  Observations seen{};
  observe::NodeSource node({.nodefs = filesystems_of(config).nodefs});
  node.read_pids(seen);
  node.read_filesystems(seen);
  Amounts amounts = machine_amounts();
  amounts.memory = node.memory_capacity();
  if (const auto& pids = of(seen, Signal::kPidAvailable)) amounts.pids = Tasks{pids->capacity};
  if (const auto& disk = of(seen, Signal::kNodeFsAvailable))
    amounts.ephemeral_storage = Bytes{disk->capacity};
  return amounts;
}

SlicesMode slices_mode(const config::Config& config) {
  if (config.policy.mode == Mode::kEnforce) return config.slices.mode;
  return std::min(config.slices.mode, SlicesMode::kObserve);
}

SliceOptions slice_options(const config::Config& config, const Amounts& capacity,
                           std::vector<std::shared_ptr<const Pod>> active) {
  return {.mode = slices_mode(config),
          .persistence = config.slices.persistent ? act::Persistence::kPersistent
                                                  : act::Persistence::kUntilReboot,
          .policy = config.reserved,
          .sizing = config.sizing,
          .thresholds = config.policy.thresholds,
          .capacity = capacity,
          .active = std::move(active)};
}

config::Diagnostics reservation_errors(const config::Config& config, const Amounts& capacity) {
  config::Diagnostics diagnostics;
  if (config.slices.mode == SlicesMode::kOff) return diagnostics;
  const auto node = node_allocatable(capacity, config.reserved, config.policy.thresholds);
  if (node) return diagnostics;
  for (const ReservationError& error : node.error())
    diagnostics.push_back({"", 0,
                           "invalid Node Allocatable configuration. " + error.what +
                               " kubeReserved, systemReserved and the hard threshold are counted "
                               "together: reserve less"});
  return diagnostics;
}

}  // namespace headroom::daemon
