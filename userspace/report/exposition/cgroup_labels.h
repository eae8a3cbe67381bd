// SPDX-License-Identifier: Apache-2.0
// CgroupLabels: the labels of every cgroup of a table, written once and used by every family.
#pragma once

#include "report/node_view.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

class CgroupLabels {
 public:
  explicit CgroupLabels(const CgroupTable& table);

  // cAdvisor's labels in Prometheus' order, escaped: container="web",id="/…",…; what is not known
  // is "", as cAdvisor has it. "" as a whole: the cgroup has no name, and no series, for two
  // series with the same labels spoil a scrape.
  std::string_view of(std::size_t record) const {
    const std::uint32_t begin = record == 0 ? 0 : ends_[record - 1];
    return std::string_view(text_).substr(begin, ends_[record] - begin);
  }

 private:
  std::string text_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace headroom::report
