// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Printable, ReplacesWhatIsNoTextOfOneLine) {
  struct Case {
    std::string_view text, expected;
  };
  for (const auto& [text, expected] : {
           Case{"", ""},
           Case{"nginx: worker", "nginx: worker"},
           Case{"b\xc3\xa4r \xe2\x82\xac \xf0\x9f\x90\xa7",
                "b\xc3\xa4r \xe2\x82\xac \xf0\x9f\x90\xa7"},
           Case{"\xff\xfe", "??"},
           Case{"a\x1e"
                "b\nc\x7f",
                "a?b?c?"},
           Case{"\xc2\x9b", "??"},       // a control character of two bytes
           Case{"\xc0\xaf", "??"},       // longer than necessary
           Case{"\xed\xa0\x80", "???"},  // a surrogate
           Case{"\xf4\x90\x80\x80", "????"},
           Case{"cut \xe2\x82", "cut ??"},
       })
    EXPECT_EQ(printable(text), expected);
}

}  // namespace
}  // namespace headroom
