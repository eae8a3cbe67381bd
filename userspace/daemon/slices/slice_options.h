// SPDX-License-Identifier: Apache-2.0
// What the slices' values follow from, of a configuration and a node.
#pragma once

#include "config/config.h"
#include "daemon/slices/slice_reconciler.h"

namespace headroom::daemon {

// The mode in force: in mode observe no slice is written either.
SlicesMode slices_mode(const config::Config& config);

SliceOptions slice_options(const config::Config& config, const Amounts& capacity,
                           std::vector<std::shared_ptr<const Pod>> active);

// What the node has, read now; may wait for a disk.
Amounts capacity_now(const config::Config& config);

// Reservations that exceed what the node has; empty while slices are off, when they are only
// reported.
config::Diagnostics reservation_errors(const config::Config& config, const Amounts& capacity);

}  // namespace headroom::daemon
