// SPDX-License-Identifier: Apache-2.0
// Trees captured from odd machines (tests/fixtures/topology): cores, sockets, nodes and caches are
// what lscpu makes of them, and their CPUs can all be dealt out, none of them twice.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_pods.h"
#include "observe/node/cpu_topology.h"
#include "support/fake_sysfs.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

// CPUs that are together in something, whatever its number.
using Partition = std::set<std::string>;

struct Captured {
  test::FakeSysfs sys;
  std::map<std::string, Partition> lscpu_says;  // by lscpu's name of the column
};

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, by);)
    words.push_back(word);
  return words;
}

Partition partition_of(const std::map<std::string, CpuSet>& groups) {
  Partition partition;
  for (const auto& [number, cpus] : groups)
    partition.insert(cpus.format());
  return partition;
}

void load(const fs::path& file, Captured& captured) {
  std::ifstream stream(file);
  ASSERT_TRUE(stream) << file;
  std::string line;
  while (std::getline(stream, line) && !line.empty()) {
    const std::size_t space = line.find(' ');
    captured.sys.write("devices/system/" + line.substr(0, space),
                       space == std::string::npos ? "" : line.substr(space + 1));
  }
  ASSERT_TRUE(std::getline(stream, line) && line.starts_with("# CPU,")) << file;
  const std::vector<std::string> columns = split(line.substr(2), ',');
  std::map<std::string, std::map<std::string, CpuSet>> groups;
  while (std::getline(stream, line)) {
    const std::vector<std::string> row = split(line, ',');
    for (std::size_t i = 1; i < row.size(); ++i)
      groups[columns[i]][row[i]].insert(std::stol(row[0]));
  }
  for (const auto& [column, of] : groups)
    captured.lscpu_says[column] = partition_of(of);
}

Partition partition_at(const Topology& topology, Level level) {
  Partition partition;
  for (const CpuGroup& group : topology.groups(level))
    partition.insert(group.cpus.format());
  return partition;
}

struct Expected {
  const char* name;
  int cpus, cores, sockets, nodes, caches;
};
void PrintTo(const Expected& row, std::ostream* out) {
  *out << row.name;
}
constexpr Expected kMachines[] = {
    {"amd-epyc-7451", 96, 48, 2, 8, 16},
    {"amd-fx-2-sockets-4-nodes", 16, 8, 2, 4, 4},
    {"arm-four-kinds", 8, 8, 3, 1, 1},
    {"intel-4-sockets-3-nodes", 64, 32, 4, 3, 4},
    {"intel-linux-6.2", 8, 4, 1, 1, 1},
    {"loongarch-guest", 32, 32, 32, 1, 1},
    {"power7-empty-node", 64, 16, 16, 1, 16},
    {"riscv-milkv-pioneer", 64, 64, 1, 4, 1},
    {"s390-drawers", 8, 8, 2, 1, 2},
    {"s390-lpar", 17, 17, 7, 1, 7},
    {"sparc64", 6, 6, 6, 1, 6},
};

class CapturedTopology : public testing::TestWithParam<Expected> {
 protected:
  void SetUp() override {
    load("tests/fixtures/topology/" + std::string(GetParam().name) + ".txt", captured_);
    auto machine = read_topology(captured_.sys.root());
    ASSERT_TRUE(machine) << machine.error().what;
    topology_ = std::move(machine->topology);
  }

  Captured captured_;
  std::optional<Topology> topology_;
};

TEST_P(CapturedTopology, IsWhatLscpuMakesOfIt) {
  const std::map<std::string, Level> levels{{"Core", Level::kCore},
                                            {"Socket", Level::kSocket},
                                            {"Node", Level::kNuma},
                                            {"L3", Level::kUncore}};
  ASSERT_FALSE(captured_.lscpu_says.empty());
  for (const auto& [column, partition] : captured_.lscpu_says)
    EXPECT_EQ(partition_at(*topology_, levels.at(column)), partition) << column;
  const Expected& expected = GetParam();
  EXPECT_EQ(topology_->cpus().size(), expected.cpus);
  EXPECT_EQ(topology_->count(Level::kCore), expected.cores);
  EXPECT_EQ(topology_->count(Level::kSocket), expected.sockets);
  EXPECT_EQ(topology_->count(Level::kNuma), expected.nodes);
  EXPECT_EQ(topology_->count(Level::kUncore), expected.caches);
}

TEST_P(CapturedTopology, IsDealtOutToTheLastCpu) {
  const CpuPolicyOptions kinds[] = {{},
                                    {.full_pcpus_only = true},
                                    {.distribute_across_numa = true},
                                    {.distribute_across_cores = true},
                                    {.prefer_align_by_uncore = true}};
  for (const CpuPolicyOptions& options : kinds) {
    const auto policy = StaticPolicy::of({.topology = *topology_,
                                          .options = options,
                                          .reservation = {.count = 1},
                                          .topology_rules = {TopologyPolicy::kBestEffort}});
    ASSERT_TRUE(policy) << policy.error().front();
    const int step = options.full_pcpus_only ? topology_->cpus_per(Level::kCore) : 1;
    CpuState state = policy->initial();
    CpuSet given;
    int refused = 0;
    for (int i = 0; refused < 4; ++i) {
      const std::string wanted = std::to_string(step * (1 + i % 4));
      const Pod pod = pod_of("p" + std::to_string(i), {}, {container("c", wanted.c_str())});
      const auto next = admit(*policy, state, pod);
      refused = next ? 0 : refused + 1;
      if (!next) continue;
      const CpuSet& own = *exclusive_cpus(*next, pod.uid, "c");
      EXPECT_FALSE(own.intersects(given)) << own.format();
      EXPECT_EQ(own.size(), std::stoi(wanted));
      given |= own;
      state = *next;
    }
    EXPECT_EQ(given | state.default_set, topology_->cpus());
    EXPECT_LT((topology_->cpus() - given - policy->reserved()).size(), std::max(step, 1) + step - 1)
        << "what is left is less than any pod asks for";
  }
}

std::string test_name(const testing::TestParamInfo<Expected>& row) {
  std::string name = row.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Machines, CapturedTopology, testing::ValuesIn(kMachines), test_name);

}  // namespace
}  // namespace headroom::observe
