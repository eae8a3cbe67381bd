// SPDX-License-Identifier: Apache-2.0
// In which order pods are evicted, signal by signal; memory by both of its paths.
#include "judge/eviction/rank.h"
#include "judge/resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

class RankingVectors : public VectorTest {
 protected:
  void SetUp() override {
    VectorTest::SetUp();
    if (HasFatalFailure()) return;
    for (const auto& entry : line().at("pods")) {
      pods_.push_back(pod_of(entry.at("pod")));
      const auto& usage = entry.at("usage");
      usages_.push_back(usage.is_null() ? std::nullopt : std::optional(usage_of(usage)));
    }
  }

  std::vector<std::string> general(Signal signal) const {
    const ImageStorage images{.dedicated = line().at("dedicated_imagefs").get<bool>(),
                              .split = line().at("split_container_imagefs").get<bool>()};
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < pods_.size(); ++i)
      contenders.push_back({&pods_[i], usages_[i] ? &*usages_[i] : nullptr});
    std::vector<std::string> names;
    for (const std::uint32_t i : rank(signal, images, contenders))
      names.push_back(pods_[i].name);
    return names;
  }

  // As the hot path sees them. Stats without a working set count as none used.
  std::vector<std::string> by_candidates(Signal signal) const {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      Candidate each{.pod = static_cast<std::uint32_t>(i),
                     .usage = {},
                     .request = eviction_request(pods_[i], "memory").value(),
                     .credit = eviction_request(pods_[i], "memory").value(),
                     .priority = pods_[i].priority};
      if (usages_[i]) each.usage = usages_[i]->working_set ? usages_[i]->working_set->count : 0;
      candidates.push_back(each);
    }
    rank(signal, candidates);
    std::vector<std::string> names;
    for (const Candidate& each : candidates)
      names.push_back(pods_[each.pod].name);
    return names;
  }

 private:
  std::vector<Pod> pods_;
  std::vector<std::optional<PodUsage>> usages_;
};

TEST_P(RankingVectors, Agree) {
  const auto signal = signal_named(text("signal"));
  ASSERT_TRUE(signal);
  const auto expected = line().at("expected_order").get<std::vector<std::string>>();
  EXPECT_EQ(general(*signal), expected);
  if (is_memory(*signal)) {
    EXPECT_EQ(by_candidates(*signal), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, RankingVectors, testing::ValuesIn(lines_of("ranking.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
