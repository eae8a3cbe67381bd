// SPDX-License-Identifier: Apache-2.0
// KubeletContainerNames: the identities of containers from a kubelet's pods: set by the loop, read
// by other threads.
#pragma once

#include "manifest/pod_status.h"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::daemon {

class KubeletContainerNames {
 public:
  void set(observe::ContainerIds ids) {
    const std::lock_guard lock(mutex_);
    ids_.swap(ids);
  }
  std::optional<ContainerIdentity> find(std::string_view runtime_id) const {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(runtime_id);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  observe::ContainerIds ids_;
};

}  // namespace headroom::daemon
