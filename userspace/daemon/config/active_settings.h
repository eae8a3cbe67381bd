// SPDX-License-Identifier: Apache-2.0
// ActiveSettings: the settings in force, which the bus's thread may read while the loop runs.
#pragma once

#include "config/setting.h"

#include <mutex>
#include <string>

namespace headroom::daemon {

class ActiveSettings {
 public:
  void set(config::ConfigSettings settings);
  // {"settings": [{"path", "entry", "value", "origin", "next", "nextOrigin"}]}; the last two where
  // something waits for the next start.
  std::string json() const;

 private:
  mutable std::mutex mutex_;
  config::ConfigSettings settings_;
};

}  // namespace headroom::daemon
