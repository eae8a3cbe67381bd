// SPDX-License-Identifier: Apache-2.0
// InventoryCgroupNames: the inventory's paths, as report/ needs them.
#pragma once

#include "observe/cgroup/cgroup_inventory.h"
#include "report/view/node_view.h"

namespace headroom::daemon {

class InventoryCgroupNames final : public report::CgroupNames {
 public:
  explicit InventoryCgroupNames(const observe::CgroupInventory& inventory)
      : inventory_(&inventory) {}
  std::string_view path_of(CgroupId id) const override {
    const observe::KnownCgroup* known = inventory_->find(id);
    return known ? std::string_view(known->path) : std::string_view();
  }
  std::uint64_t started_ns(CgroupId id) const override {
    const observe::KnownCgroup* known = inventory_->find(id);
    return known ? known->started_ns : HR_UNKNOWN;
  }

 private:
  const observe::CgroupInventory* inventory_;
};

}  // namespace headroom::daemon
