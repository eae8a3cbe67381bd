// SPDX-License-Identifier: Apache-2.0
// What a reload changes: all of the configuration, except the keys that need a restart (keys.h).
#pragma once

#include "config/config.h"

namespace headroom::config {

// The configuration in force after `loaded` is adopted by a daemon that runs with `running`. Keys
// that need a restart keep their running value; their settings name the value that waits.
Config adopt_reload(Config loaded, const Config& running);

}  // namespace headroom::config
