// SPDX-License-Identifier: Apache-2.0
// The metrics that were renamed in 0.1; until 0.2 they are exported under their old names as well.
#pragma once

#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/metrics.h"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace headroom::report {

struct RenamedLabelValue {
  std::string_view old_value, new_value;
};

// Unlisted labels and values are the same under both names.
struct RenamedMetric {
  std::string_view old_name, new_name;
  std::string_view old_label = {}, new_label = {};
  std::array<RenamedLabelValue, 2> values = {};  // of that label; "" is unused
  double scale = 1;                              // old value = new value × scale
};

std::span<const RenamedMetric> renamed_metrics();

// Appends the old families, made from the new ones. Their help says that they are deprecated.
void add_old_names(Families& families);

// The renamed families of cgroups: their series are written row by row, never as one family.
std::vector<CgroupFamilyAlias> old_cgroup_names();

}  // namespace headroom::report
