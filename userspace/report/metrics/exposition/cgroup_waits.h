// SPDX-License-Identifier: Apache-2.0
// CgroupWaits: what each record of a table has waited for: few have, and these are found by id
// once.
#pragma once

#include "report/view/node_view.h"

#include <vector>

namespace headroom::report {

class CgroupWaits {
 public:
  explicit CgroupWaits(const CgroupTable& table);

  // Null: it has not waited, or waits are not watched.
  const hr_stalls* stalls(std::size_t record) const { return stalls_[record]; }
  const hr_waits* throttles(std::size_t record) const { return throttles_[record]; }

 private:
  std::vector<const hr_stalls*> stalls_;
  std::vector<const hr_waits*> throttles_;
};

}  // namespace headroom::report
