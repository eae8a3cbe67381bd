// SPDX-License-Identifier: Apache-2.0
// What recorded use asks to be reserved: by each predictor, at its bounds, and beside what is
// reserved now.
#include "judge/advice/reserve_advice.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

// A hundred steps: `low` for 90 of them, `middle` for 7, `high` for 3.
std::vector<double> steps(double low, double middle, double high) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i)
    values.push_back(i < 90 ? low : i < 97 ? middle : high);
  return values;
}

ReserveUse use_of_two() {
  ReserveUse use{.cgroups = {steps(100, 200, 300), steps(50, 50, 50)},
                 .sum = steps(150, 250, 350),
                 .capacity = 10'000,
                 .present = std::nullopt,
                 .unit = 10};
  return use;
}

TEST(ReserveAdvice, ThePercentileOfEachCgroupAndATenth) {
  const auto advice = advise_reserve(use_of_two(), predict_percentile);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->wanted, 390) << "(300 + 50) and a tenth, in tens";
  EXPECT_EQ(advice->median, 150);
  EXPECT_EQ(advice->p98, 350);
  EXPECT_EQ(advice->peak, 350);
  EXPECT_TRUE(advice->changes);
  EXPECT_EQ(advice->too_low, 0);
}

TEST(ReserveAdvice, ByTheOtherPredictors) {
  const ReserveUse use = use_of_two();
  // The mean is 163 and the deviation 41.6.
  EXPECT_EQ(advise_reserve(use, predict_sigma)->wanted, 380);
  EXPECT_EQ(advise_reserve(use, predict_maximum)->wanted, 380);
  // The highest of each, and half of the 26 that the second half of the steps has more than the
  // first.
  EXPECT_EQ(advise_reserve(use, predict_drift)->wanted, 370);
  EXPECT_FALSE(advise_reserve(use, predict_limits)) << "there are no limits";
}

TEST(ReserveAdvice, APresentValueThatIsCloseIsRight) {
  struct Case {
    double present;
    bool changes;
  };
  for (const Case& c : {Case{390, false}, Case{360, false}, Case{430, false}, Case{340, true},
                        Case{440, true}, Case{0, true}}) {
    ReserveUse use = use_of_two();
    use.present = c.present;
    EXPECT_EQ(advise_reserve(use, predict_percentile)->changes, c.changes) << c.present;
  }
}

TEST(ReserveAdvice, AtItsLimitTheUseIsUnknownSoTheReserveGrows) {
  ReserveUse use = use_of_two();
  use.present = 350;
  use.at_limit = true;
  EXPECT_EQ(advise_reserve(use, predict_percentile)->wanted, 420);
  use.present = 100;
  EXPECT_EQ(advise_reserve(use, predict_percentile)->wanted, 390);
  use.present = std::nullopt;
  EXPECT_EQ(advise_reserve(use, predict_percentile)->wanted, 390);
}

TEST(ReserveAdvice, NeverMoreThanTheNodeHasNorNothing) {
  ReserveUse use = use_of_two();
  use.capacity = 200;
  const auto advice = advise_reserve(use, predict_percentile);
  EXPECT_EQ(advice->wanted, 200);
  EXPECT_NEAR(advice->too_low, 0.1, 1e-9) << "ten of a hundred steps are above it";
  use = {.cgroups = {steps(0, 0, 0)}, .sum = steps(0, 0, 0), .unit = 10};
  EXPECT_EQ(advise_reserve(use, predict_percentile)->wanted, 10);
}

TEST(ReserveAdvice, TooFewStepsAreNotEnough) {
  ReserveUse use = use_of_two();
  use.cgroups = {std::vector<double>(kLeastReserveSteps, 5)};
  use.sum = use.cgroups.front();
  EXPECT_TRUE(advise_reserve(use, predict_percentile));
  use.sum.pop_back();
  EXPECT_FALSE(advise_reserve(use, predict_percentile));
  EXPECT_FALSE(advise_reserve({}, predict_percentile));
}

}  // namespace
}  // namespace headroom
