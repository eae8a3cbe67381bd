// SPDX-License-Identifier: Apache-2.0
// RowName: names a parameterised test after its row.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace headroom::test {

// For rows with a `name`; a row that is printed is printed as its name by its own PrintTo().
struct RowName {
  template <class Row>
  std::string operator()(const testing::TestParamInfo<Row>& row) const {
    return row.param.name;
  }
};

}  // namespace headroom::test
