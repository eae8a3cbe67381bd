// SPDX-License-Identifier: Apache-2.0
// What stays, what is given anew and what is refused when machine, configuration or file changed.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

// Eight CPUs, four cores; 0 is reserved unless said otherwise.
StaticPolicy policy_of(const char* reserved = "0", bool strict = false,
                       Topology topology = machine({})) {
  return StaticPolicy::of({.topology = std::move(topology),
                           .options = {.strict_reservation = strict},
                           .reservation = {.cpus = cpus(reserved)}})
      .value();
}

std::string text_of(const CpuState& state) {
  std::string text = state.default_set.format();
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [name, set] : containers)
      text.append("; ").append(uid).append("/").append(name).append(" ").append(set.format());
  return text;
}

Pod pinned(const char* uid, const char* cpu) {
  return pod_of(uid, {}, {container("c", cpu)});
}

struct Row {
  const char* name;
  CpuState known;
  std::vector<Pod> pods;
  std::vector<RunningCpus> running;
  const char* expected;
  std::size_t refused = 0;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const Row kRows[] = {
    {"nobody_has_nothing", {}, {}, {}, "0-7"},
    {"what_is_known_stays",
     {cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}},
     {pinned("a", "2")},
     {},
     "0-3,6-7; a/c 4-5"},
    {"the_gone_give_theirs_back", {cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}}, {}, {}, "0-7"},
    {"the_first_to_come_is_served_first",
     {},
     {pinned("b", "4"), pinned("a", "4")},
     {},
     "0,3-4,7; b/c 1-2,5-6",
     1},
    {"a_lost_file_is_made_from_what_runs",
     {},
     {pinned("a", "2"), pinned("b", "2")},
     {{"a", "c", cpus("6-7")}, {"b", "c", cpus("2-3")}},
     "0-1,4-5; a/c 6-7; b/c 2-3"},
    {"though_somebody_came_meanwhile_who_runs_everywhere",
     {},
     {pinned("n", "1"), pinned("a", "2"), pinned("b", "2")},
     {{"n", "c", cpus("0-7")}, {"a", "c", cpus("6-7")}, {"b", "c", cpus("2-3")}},
     "0-1,5; a/c 6-7; b/c 2-3; n/c 4"},
    {"of_two_that_run_on_the_same_the_first_stays",
     {},
     {pinned("a", "2"), pinned("b", "2")},
     {{"a", "c", cpus("2-3")}, {"b", "c", cpus("3-4")}},
     "0,4,6-7; a/c 2-3; b/c 1,5"},
    {"what_runs_wins_over_an_old_file",
     {cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}},
     {pinned("a", "2")},
     {{"a", "c", cpus("6-7")}},
     "0-5; a/c 6-7"},
    {"a_set_others_run_on_is_not_exclusive",
     {cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}},
     {pinned("a", "2"), pinned("b", "500m")},
     {{"a", "c", cpus("6-7")}, {"b", "c", cpus("0-7")}},
     "0-3,6-7; a/c 4-5"},
    {"a_set_of_another_size_is_not_what_was_given",
     {cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}},
     {pinned("a", "2")},
     {{"a", "c", cpus("0-7")}},
     "0-3,6-7; a/c 4-5"},
    {"reserved_ones_are_taken_back",
     {cpus("1-7"), {{"a", {{"c", cpus("0")}}}}},
     {pinned("a", "1")},
     {{"a", "c", cpus("0")}},
     "0-3,5-7; a/c 4"},
    {"of_two_with_the_same_one_moves",
     {cpus("0,4-7"), {{"a", {{"c", cpus("2-3")}}}, {"b", {{"c", cpus("2-3")}}}}},
     {pinned("a", "2"), pinned("b", "2")},
     {},
     "0,4,6-7; a/c 2-3; b/c 1,5"},
    {"who_wants_fewer_keeps_some",
     {cpus("0-5"), {{"a", {{"c", cpus("6-7")}}}}},
     {pinned("a", "1")},
     {},
     "0-5,7; a/c 6"},
    {"who_wants_more_keeps_what_it_has",
     {cpus("0-4,6"), {{"a", {{"c", cpus("5,7")}}}}},
     {pinned("a", "4")},
     {},
     "0,2,4,6; a/c 1,3,5,7"},
    {"a_size_that_cannot_be_leaves_what_there_is",
     {cpus("0-5"), {{"a", {{"c", cpus("6-7")}}}}},
     {pinned("a", "20")},
     {},
     "0-5; a/c 6-7",
     1},
    {"cpus_that_are_gone_are_replaced",
     {cpus("0-6"), {{"a", {{"c", cpus("7-8")}}}}},
     {pinned("a", "2")},
     {},
     "0-2,4-6; a/c 3,7"},
    {"or_done_without",
     {cpus("0"), {{"a", {{"c", cpus("1-6")}}}, {"b", {{"c", cpus("7-8")}}}}},
     {pinned("a", "6"), pinned("b", "2")},
     {},
     "0; a/c 1-6; b/c 7",
     1},
};

class AssignCpusTest : public testing::TestWithParam<Row> {};

TEST_P(AssignCpusTest, HasTheExpectedState) {
  const Row& row = GetParam();
  std::vector<const Pod*> active;
  for (const Pod& pod : row.pods)
    active.push_back(&pod);
  const StaticPolicy policy = policy_of();
  const CpuAssignment arrangement = assign_cpus(policy, row.known, active, row.running);
  EXPECT_EQ(text_of(arrangement.state), row.expected);
  EXPECT_EQ(arrangement.refused.size(), row.refused);
  EXPECT_TRUE(policy.find_faults(arrangement.state).empty());
  // Once arranged, it stays so.
  EXPECT_EQ(assign_cpus(policy, arrangement.state, active).state, arrangement.state);
}

INSTANTIATE_TEST_SUITE_P(Rows, AssignCpusTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(AssignCpusTest, AReturnedCpuGoesToTheContainerThatLacksIt) {
  const StaticPolicy policy = policy_of();
  const Pod a = pinned("a", "6"), b = pinned("b", "1");
  const Pod* const both[] = {&a, &b};
  CpuState state{cpus("0"), {{"a", {{"c", cpus("1-5")}}}, {"b", {{"c", cpus("7")}}}}};
  const CpuAssignment whole = assign_cpus(policy, state, both);
  EXPECT_TRUE(whole.refused.empty());
  EXPECT_EQ(text_of(whole.state), "0; a/c 1-6; b/c 7");
}

TEST(AssignCpusTest, CpusOfInitContainersAreReused) {
  const StaticPolicy policy = policy_of();
  const Pod pod = pod_of("a", {container("i", "2")}, {container("c", "2")});
  const Pod* const active[] = {&pod};
  const CpuState first = assign_cpus(policy, {}, active).state;
  EXPECT_EQ(text_of(first), "0,2-4,6-7; a/c 1,5; a/i 1,5");
  EXPECT_EQ(assign_cpus(policy, first, active).state, first);
}

TEST(AssignCpusTest, StrictReservationTurnedOnTakesTheReservedOutOfThePool) {
  const CpuState known{cpus("0-3,6-7"), {{"a", {{"c", cpus("4-5")}}}}};
  const Pod pod = pinned("a", "2");
  const Pod* const active[] = {&pod};
  EXPECT_EQ(text_of(assign_cpus(policy_of("0-1", true), known, active).state), "2-3,6-7; a/c 4-5");
}

TEST(AssignCpusTest, ThePoolIsNeverEmpty) {
  const StaticPolicy policy = policy_of("0-1", true);
  const Pod pod = pinned("a", "6");
  const Pod* const active[] = {&pod};
  const CpuState state = assign_cpus(policy, {}, active).state;
  EXPECT_TRUE(state.default_set.empty());
  EXPECT_EQ(shared_pool(policy, state).format(), "0-1");
}

}  // namespace
}  // namespace headroom
