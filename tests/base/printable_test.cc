// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Printable, ReplacesWhatIsNoTextOfOneLine) {
  struct Case {
    std::string_view text, expected;
  };
  for (const auto& [text, expected] : {
           Case{"", ""}, Case{"nginx: worker", "nginx: worker"},
           Case{"b\xc3\xa4r \xe2\x82\xac \xf0\x9f\x90\xa7",
                "b\xc3\xa4r \xe2\x82\xac \xf0\x9f\x90\xa7"},
           Case{"\xff\xfe", "??"},
           Case{"a\x1e"
                "b\nc\x7f",
                "a?b?c?"},
           Case{"\xc2\x9b", "??"},       // a control character of two bytes
           Case{"\xc0\xaf", "??"},       // longer than necessary
           Case{"\xed\xa0\x80", "???"},  // a surrogate
           Case{"\xf4\x90\x80\x80", "????"}, Case{"cut \xe2\x82", "cut ??"},
           Case{"a\xe2\x80\xae"
                "b",
                "a???b"},                // U+202E, right to left
           Case{"\xe2\x80\xa8", "???"},  // U+2028, a line separator
           Case{"\xd8\x9c\xe2\x81\xa6", "?????"},
           Case{"\xe2\x80\x94", "\xe2\x80\x94"},  // a dash stays
       })
    EXPECT_EQ(printable(text), expected);
}

}  // namespace
}  // namespace headroom
