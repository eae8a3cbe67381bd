// SPDX-License-Identifier: Apache-2.0
// The memory manager as configured: the kubelet's keys and flags, and what is refused.
#include "config/files.h"
#include "config/flags/command_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_text;
using test::said;
using Lines = std::vector<std::string>;
using Policy = CpusConfig::MemoryManagerPolicy;

TEST(MemoryManagerConfig, IsNoneByDefault) {
  const auto config = load_text("");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->cpus.memory_policy, Policy::kNone);
  EXPECT_TRUE(config->cpus.reserved_memory.empty());
  EXPECT_EQ(config->cpus.memory_state_file, "/var/lib/headroom/memory_manager_state");
}

TEST(MemoryManagerConfig, IsReadFromTheKubeletsKeys) {
  const auto config = load_text(R"(memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 1Gi, hugepages-1Gi: 2Gi}
- numaNode: 1
  limits: {memory: 512Mi}
headroom:
  cpus: {mode: enforce, memoryStateFile: /srv/memory}
)");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->cpus.memory_policy, Policy::kStatic);
  const ReservedMemory& reserved = config->cpus.reserved_memory;
  ASSERT_EQ(reserved.size(), 2u);
  EXPECT_EQ(reserved.at(0).at("memory").canonical(), "1Gi");
  EXPECT_EQ(reserved.at(0).at("hugepages-1Gi").canonical(), "2Gi");
  EXPECT_EQ(reserved.at(1).at("memory").canonical(), "512Mi");
  EXPECT_EQ(config->cpus.memory_state_file, "/srv/memory");
}

TEST(MemoryManagerConfig, EveryErrorIsReported) {
  const auto config = load_text(R"(memoryManagerPolicy: static
reservedMemory:
- numaNode: 0
  limits: {memory: 0, cpu: 1}
- {numaNode: 0, limits: {memory: 1Gi}}
- {numaNode: 0, limits: {memory: 2Gi}}
- {limits: {memory: 1Gi}}
- {numaNode: 64, limits: {memory: 1Gi}, limit: {}}
)");
  ASSERT_FALSE(config);
  EXPECT_EQ(said(config),
            (Lines{"3: memoryManagerPolicy: expected None or Static, found \"static\"",
                   "6: reservedMemory[0].limits.memory: expected more than zero",
                   "6: reservedMemory[0].limits.cpu: expected memory or hugepages-SIZE",
                   "8: reservedMemory[2].limits.memory: node 0 has a reservation of it already",
                   "9: missing reservedMemory[3].numaNode",
                   "10: unknown key reservedMemory[4].limit, did you mean limits?",
                   "10: reservedMemory[4].numaNode: expected a whole number from 0 to 63, found "
                   "the number 64"}));
}

TEST(MemoryManagerConfig, ThePolicyStaticNeedsReservedMemory) {
  const auto config = load_text(
      "memoryManagerPolicy: Static\n"
      "reservedMemory: [{numaNode: 0, limits: {hugepages-2Mi: 2Mi}}]\n"
      "headroom: {cpus: {mode: observe}}\n");
  EXPECT_EQ(said(config), (Lines{"3: memoryManagerPolicy: the policy Static needs memory that is "
                                 "reserved: set reservedMemory"}));
  EXPECT_TRUE(load_text("memoryManagerPolicy: Static\n")) << "nothing is pinned";
}

TEST(MemoryManagerConfig, FlagsReplaceTheFile) {
  const test::TempDir dir;
  CommandLine line;
  line.config = {dir.write(
      "f.yaml",
      std::string(test::kHead) + "reservedMemory: [{numaNode: 7, limits: {memory: 1Gi}}]\n")};
  line.memory_manager_policy = {"Static"};
  line.reserved_memory = {"0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi"};
  const LoadResult loaded = read(line);
  ASSERT_TRUE(loaded.diagnostics.empty()) << to_string(loaded.diagnostics[0]);
  EXPECT_EQ(loaded.config.cpus.memory_policy, Policy::kStatic);
  ASSERT_EQ(loaded.config.cpus.reserved_memory.size(), 2u);
  EXPECT_EQ(loaded.config.cpus.reserved_memory.at(0).at("hugepages-2Mi").canonical(), "64Mi");
  EXPECT_EQ(loaded.config.cpus.reserved_memory.at(1).at("memory").canonical(), "2Gi");

  line.memory_manager_policy = {"static"};
  line.reserved_memory = {"memory=1Gi", "0:memory", "0:memory=1Gi,memory=1Gi", "1:memory=x"};
  const LoadResult refused = read(line);
  ASSERT_EQ(refused.diagnostics.size(), 5u);
  for (const Diagnostic& diagnostic : refused.diagnostics)
    EXPECT_TRUE(diagnostic.file == "--reserved-memory" ||
                diagnostic.file == "--memory-manager-policy")
        << to_string(diagnostic);
}

}  // namespace
}  // namespace headroom::config
