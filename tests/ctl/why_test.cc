// SPDX-License-Identifier: Apache-2.0
// One eviction of the log, found and explained.
#include "ctl/common/commands.h"
#include "ctl/evictions/audit_file.h"
#include "ctl/evictions/explain.h"
#include "report/eviction/audit_line.h"
#include "report/golden.h"
#include "report/sample.h"

#include <sstream>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;
using Selection = Candidate::Selection;
using Json = nlohmann::json;

std::string line_of(const report::Eviction& eviction) {
  std::string line = report::audit_line(eviction, WallTime(1'700'000'000s), nullptr);
  line.pop_back();
  return line;
}

// It holds the selection of every pod.
report::Eviction eviction_with_many_candidates() {
  report::Eviction eviction = test::sample_eviction();
  const auto add = [&](const char* name, std::optional<std::int64_t> usage, Bytes request,
                       std::int32_t priority, Selection selection) {
    eviction.ranking.push_back({.pod = test::sample_pod(name, QosClass::kBurstable, priority),
                                .usage = usage,
                                .request = request.count,
                                .priority = priority,
                                .selection = selection});
  };
  eviction.ranking.resize(1);
  add("late", (900_MiB).count, 0_B, 0, Selection::kOutranked);
  add("dear", (2_GiB).count, 0_B, 1000, Selection::kOutranked);
  add("thrifty", (100_MiB).count, 1_GiB, -5, Selection::kOutranked);
  add("dns", (300_MiB).count, 0_B, 0, Selection::kCritical);
  add("leaving", (700_MiB).count, 0_B, 0, Selection::kAlreadyTerminating);
  add("hollow", 0, 0_B, 0, Selection::kEmpty);
  add("blank", std::nullopt, 0_B, 0, Selection::kUnknown);
  eviction.decision.rank_info.candidates = 8;
  eviction.kubelet = KubeletPrediction{.cgroup = CgroupId{3},
                                       .lead = 7s,
                                       .samples_age = 3s,
                                       .choice = test::sample_pod("dear", QosClass::kBurstable)};
  return eviction;
}

report::Eviction of_pod(const char* the_namespace, const char* name, const char* uid) {
  report::Eviction eviction = test::sample_eviction();
  auto pod = test::sample_pod(name, QosClass::kBurstable);
  pod->pod_namespace = the_namespace;
  pod->uid = uid;
  eviction.decision.pod = pod;
  return eviction;
}

TEST(Why, ReadsAsTheGoldenText) {
  test::expect_golden("top/why.txt",
                      explain(Json::parse(line_of(eviction_with_many_candidates())), nullptr, {}));
}

TEST(Why, ASoftEvictionHasItsGrace) {
  report::Eviction eviction = test::sample_eviction();
  eviction.decision.act = Act::kTerminate;
  eviction.decision.deadline = eviction.decision.decided_at + 10s;
  eviction.decision.reason.hard = false;
  eviction.decision.reason.first_crossed -= 30s;
  eviction.terminated_at = eviction.signalled_at;
  eviction.killed_at = {};
  const std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  EXPECT_NE(page.find("below its soft threshold"), page.npos) << page;
  EXPECT_NE(page.find("after a grace of at most 10s"), page.npos) << page;
  EXPECT_NE(page.find("30s  it stays crossed until its grace is over"), page.npos) << page;
  EXPECT_NE(page.find("85ms  the processes end"), page.npos) << page;
}

TEST(Why, AnEvictionForCpusHasARuleOfItsOwn) {
  report::Eviction eviction = eviction_with_many_candidates();
  eviction.decision.reason.signal = Signal::kCpuPressure;
  eviction.decision.reason.threshold = 700'000;
  eviction.decision.reason.available = 400'000;
  eviction.decision.reason.capacity = 1'000'000;
  eviction.decision.rank_info.usage = 1500;
  eviction.ranking.resize(1);
  eviction.ranking[0].usage = 1500;
  eviction.ranking[0].request = 250;
  eviction.ranking.push_back({.pod = test::sample_pod("small", QosClass::kBurstable, 0),
                              .usage = 10,
                              .request = 0,
                              .priority = 0,
                              .selection = Selection::kNothingToFree});
  const std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  for (const char* const text :
       {"cpu.pressure was 40.0%", "threshold of 70.0%", "explains that others wait", "1.50 CPUs",
        "0.25 CPUs", "within its request, or its use does not explain the waits"})
    EXPECT_NE(page.find(text), page.npos) << text << "\n" << page;
}

TEST(Why, AContainerKillHasItsLadderSteps) {
  report::Eviction eviction = test::sample_eviction();
  eviction.decision.part = {.unit = EvictionUnit::kProcess,
                            .cgroup = CgroupId{9},
                            .process = {4711, 5},
                            .comm = {'j', 'a', 'v', 'a'}};
  eviction.ladder = {3, 1, 0, 0};
  const std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  EXPECT_TRUE(page.starts_with("a process of default/hog")) << page;
  EXPECT_NE(page.find("was killed"), page.npos) << page;
  EXPECT_NE(page.find("Its largest process was killed, not the pod: 4711 (java)."), page.npos)
      << page;
  EXPECT_NE(page.find("In the minute before: page cache was reclaimed (3×), BestEffort pods were "
                      "limited to their usage (1×)."),
            page.npos)
      << page;
}

TEST(Why, AStuckPodNamesItsMemoryHigh) {
  report::Eviction eviction = test::sample_eviction();
  eviction.decision.reason.cause = Cause::kStuck;
  eviction.decision.reason.threshold = (40_MiB).count;
  const std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  EXPECT_NE(page.find("It was stuck at its own memory.high of 40Mi."), page.npos) << page;
}

TEST(Why, WithSwapItSaysWhatItCounted) {
  report::Eviction eviction = test::sample_eviction();
  EXPECT_EQ(explain(Json::parse(line_of(eviction)), nullptr, {}).find("Swap"), std::string::npos);
  eviction.swap_room = {.kubelet = (700_MiB).count,
                        .memory = (20_MiB).count,
                        .gain = (110_MiB).count,
                        .filling = (40_MiB).count,
                        .bound = SwapRoom::Bound::kRoom,
                        .in_force = true,
                        .stalled = 0.7,
                        .pods_stalled = 0.25};
  std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  for (const char* const text :
       {"Swap ", "MemAvailable 20Mi; free swap gains 110Mi, of which the next second fills 40Mi",
        "by the kubelet's rule 700Mi were available"})
    EXPECT_NE(page.find(text), page.npos) << text << "\n" << page;
  EXPECT_EQ(page.find("thrashed"), page.npos) << page;
  eviction.swap_room->bound = SwapRoom::Bound::kThrashing;
  page = explain(Json::parse(line_of(eviction)), nullptr, {});
  EXPECT_NE(page.find("the node thrashed, so free swap gained nothing: all tasks waited for 70%"),
            page.npos)
      << page;
  EXPECT_NE(page.find("and a pod within its memory request for 25%"), page.npos) << page;
}

TEST(Why, MissingFieldsAreLeftOut) {
  for (const char* record : {R"({})", R"({"pod":7,"ranking":{},"instants_ns":[],"latency":"x"})",
                             R"({"outcome":"evicted","ranking":[1,null,{"selection":3}]})"})
    EXPECT_NE(explain(Json::parse(record), nullptr, {}).find("-/-"), std::string::npos) << record;
}

TEST(Why, ATaintNeedsNoReading) {
  report::Eviction eviction = test::sample_eviction();
  eviction.ranking.clear();
  eviction.decision.reason =
      Reason{.cause = Cause::kTaint,
             .sampled_at = {},
             .first_crossed = {},
             .last_clear = {},
             .taint = std::make_shared<Taint>(Taint{"dedicated", "gpu", {}})};
  const std::string page = explain(Json::parse(line_of(eviction)), nullptr, {});
  EXPECT_NE(page.find("The node is tainted dedicated=gpu"), page.npos) << page;
  EXPECT_EQ(page.find("Rule"), page.npos) << page;
}

struct QueryCase {
  const char* name;
  std::size_t nth_from_last;
  const char* answer;  // the uid, or what the error says
};

class WhyTest : public testing::TestWithParam<QueryCase> {};

TEST_P(WhyTest, FindsTheRecordOrListsTheOthers) {
  std::deque<std::string> lines{line_of(of_pod("default", "web", "uid-1")), "{half",
                                line_of(of_pod("default", "web", "uid-2")),
                                line_of(of_pod("shop", "db", "uid-3")),
                                line_of(of_pod("test", "db", "uid-4"))};
  EvictionQuery query;
  query.pod = GetParam().name;
  query.nth_from_last = GetParam().nth_from_last;
  const auto found = find_eviction(lines, query);
  const std::string answer =
      found ? found->record["pod"]["uid"].get<std::string>() : found.error().what;
  EXPECT_EQ(answer, GetParam().answer);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, WhyTest,
    testing::Values(QueryCase{"", 1, "uid-4"}, QueryCase{"", 4, "uid-1"},
                    QueryCase{"web", 1, "uid-2"}, QueryCase{"default/web", 2, "uid-1"},
                    QueryCase{"uid-3", 1, "uid-3"}, QueryCase{"shop/db", 1, "uid-3"},
                    QueryCase{"db", 1, "db is ambiguous: shop/db, test/db; give the namespace too"},
                    QueryCase{
                        "absent", 1,
                        "no eviction of absent is on record; headroomctl evictions lists them"},
                    QueryCase{"web", 3, "only 2 evictions of web are on record"},
                    QueryCase{"", 5, "only 4 evictions are on record"}));

TEST(Why, AnEmptyLogAndAnInvalidLogAreErrors) {
  EXPECT_EQ(find_eviction({}, {}).error().what, "no eviction is on record");
  EXPECT_EQ(find_eviction({"{", "[]"}, {}).error().what,
            "no line of the log is an eviction's record");
}

TEST(AuditFile, OnlyTheLastWholeLinesAreTaken) {
  std::istringstream log("one\ntwo\nthree\nhalf");
  EXPECT_EQ(last_lines(log, 2), (std::deque<std::string>{"two", "three"}));
  std::istringstream all("one\ntwo\n");
  EXPECT_EQ(last_lines(all, 0), (std::deque<std::string>{"one", "two"}));
  std::istringstream none("");
  EXPECT_TRUE(last_lines(none, 5).empty());
}

}  // namespace
}  // namespace headroom::ctl
