// SPDX-License-Identifier: Apache-2.0
// What the slices' values follow from, of a configuration and a node.
#pragma once

#include "config/config.h"
#include "daemon/slices/slice_reconciler.h"

namespace headroom::daemon {

// The one in force: who only observes writes nothing here either.
SlicesMode slices_mode(const config::Config& config);

SliceOptions slice_options(const config::Config& config, const Amounts& capacity,
                           std::vector<std::shared_ptr<const Pod>> active);

// What the node has, read now; may wait for a disk.
Amounts capacity_now(const config::Config& config);

// What cannot be reserved, because the node has not so much of it; nothing while slices are off,
// when it is only told.
config::Diagnostics reservation_errors(const config::Config& config, const Amounts& capacity);

}  // namespace headroom::daemon
