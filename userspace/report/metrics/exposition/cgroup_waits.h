// SPDX-License-Identifier: Apache-2.0
// CgroupWaits: the waits of each record of a table. Few cgroups have any; these are looked up by id
// once.
#pragma once

#include "report/view/node_view.h"

#include <vector>

namespace headroom::report {

class CgroupWaits {
 public:
  explicit CgroupWaits(const CgroupTable& table);

  // Null: no waits, or not watched.
  const hr_stalls* stalls(std::size_t record) const { return stalls_[record]; }
  const hr_waits* throttles(std::size_t record) const { return throttles_[record]; }

 private:
  std::vector<const hr_stalls*> stalls_;
  std::vector<const hr_waits*> throttles_;
};

}  // namespace headroom::report
