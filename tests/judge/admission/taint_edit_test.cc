// SPDX-License-Identifier: Apache-2.0
// Edits of taints: what kubectl's grammar means, what is refused, what outlives a reload.
#include "judge/admission/taints.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Lines = std::vector<std::string>;

std::vector<TaintEdit> parsed(const Lines& texts) {
  std::vector<TaintEdit> edits;
  for (const std::string& text : texts) {
    const auto edit = parse_taint_edit(text);
    EXPECT_TRUE(edit) << (edit ? "" : edit.error().what);
    if (edit) edits.push_back(*edit);
  }
  return edits;
}

Lines lines(const std::vector<Taint>& taints) {
  Lines all;
  for (const Taint& taint : taints)
    all.push_back(to_string(taint));
  return all;
}

std::vector<Taint> taints(const Lines& texts) {
  return apply_taint_edits({}, parsed(texts), false).value();
}

TEST(TaintEdit, IsParsedAsByKubectl) {
  struct Case {
    const char* text;
    TaintEdit edit;
  };
  for (const Case& c : {
           Case{"a=b:NoExecute", {false, "a", "b", TaintEffect::kNoExecute}},
           Case{"a:NoSchedule", {false, "a", "", TaintEffect::kNoSchedule}},
           Case{"example.com/a=b.c:PreferNoSchedule",
                {false, "example.com/a", "b.c", TaintEffect::kPreferNoSchedule}},
           Case{"a:NoExecute-", {true, "a", "", TaintEffect::kNoExecute}},
           Case{"a-", {true, "a", "", std::nullopt}},
           Case{"a=b:NoExecute-", {true, "a", "b", TaintEffect::kNoExecute}},
       }) {
    const auto edit = parse_taint_edit(c.text);
    ASSERT_TRUE(edit) << c.text;
    EXPECT_EQ(*edit, c.edit) << c.text;
  }
}

TEST(TaintEdit, ErrorsNameTheExpectedForm) {
  for (const char* text : {"", "a", "a=b", "a:", "a:noexecute", "a=b:NoExecute:", "=b:NoExecute",
                           "-", "a b:NoExecute", "a=b c:NoExecute", "/a:NoExecute",
                           "Example.com/a:NoExecute", "a=-:NoExecute", "a.:NoExecute"})
    EXPECT_FALSE(parse_taint_edit(text)) << text;
  EXPECT_FALSE(parse_taint_edit(std::string(64, 'a') + ":NoExecute"));
  EXPECT_TRUE(parse_taint_edit(std::string(63, 'a') + ":NoExecute"));
  EXPECT_EQ(parse_taint_edit("a:Never").error().what,
            "\"a:Never\": expected KEY=VALUE:EFFECT or KEY:EFFECT to add, KEY:EFFECT- or KEY- to "
            "remove, where EFFECT is NoSchedule, PreferNoSchedule or NoExecute");
}

TEST(TaintEdit, AddsReplacesAndRemoves) {
  const auto three = taints({"a=1:NoExecute", "a=1:NoSchedule", "b:NoSchedule"});
  EXPECT_EQ(lines(apply_taint_edits(three, parsed({"a-"}), false).value()), Lines{"b:NoSchedule"});
  EXPECT_EQ(lines(apply_taint_edits(three, parsed({"a:NoExecute-", "c:NoExecute"}), false).value()),
            (Lines{"a=1:NoSchedule", "b:NoSchedule", "c:NoExecute"}));
  EXPECT_EQ(apply_taint_edits(three, parsed({"a=1:NoExecute"}), false).value(), three)
      << "it is there";
  EXPECT_EQ(lines(apply_taint_edits(three, parsed({"a=2:NoExecute"}), true).value()),
            (Lines{"a=2:NoExecute", "a=1:NoSchedule", "b:NoSchedule"}));
}

TEST(TaintEdit, IsAtomicAndReportsEveryError) {
  const auto refused = apply_taint_edits(taints({"a=1:NoExecute"}),
                                         parsed({"a=2:NoExecute", "x-", "b:NoExecute-"}), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Lines{"the node already has a=1:NoExecute; --overwrite replaces it",
                                    "taint \"x\" not found", "taint \"b:NoExecute\" not found"}));
}

TEST(TaintEdit, AReloadRemovesOnlyTaintsOfTheFile) {
  const auto before = taints({"file=1:NoSchedule", "gone:NoSchedule"});
  const auto now = taints({"file=2:NoSchedule", "new:NoSchedule"});
  EXPECT_EQ(lines(reconcile_taints(
                taints({"file=1:NoSchedule", "gone:NoSchedule", "hand:NoExecute"}), before, now)),
            (Lines{"hand:NoExecute", "file=2:NoSchedule", "new:NoSchedule"}));
  EXPECT_EQ(lines(reconcile_taints(taints({"hand:NoExecute"}), before, before)),
            Lines{"hand:NoExecute"})
      << "one of the file's that was removed by hand stays removed";
  EXPECT_EQ(lines(reconcile_taints({}, {}, now)), (Lines{"file=2:NoSchedule", "new:NoSchedule"}));
}

}  // namespace
}  // namespace headroom
