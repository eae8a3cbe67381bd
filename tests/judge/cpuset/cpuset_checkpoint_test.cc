// SPDX-License-Identifier: Apache-2.0
// cpu_manager_state of every version: there and back, and what damage is noticed.
#include "act/cpus/cpu_checkpoint.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using Kind = CheckpointError::Kind;

CpuCheckpoint sample() {
  return {
      .policy = "static",
      .state = {.default_set = {0, 4, 5, 6, 7},
                .entries = {{"uid-1", {{"app", {1}}, {"init", {1, 2}}}}, {"uid-2", {{"c", {3}}}}},
                .pod_entries = {}}};
}

CpuCheckpoint with_pod_entry() {
  CpuCheckpoint checkpoint = sample();
  checkpoint.state.pod_entries = {{"uid-1", {1, 2}}};
  return checkpoint;
}

TEST(CpuCheckpoint, EveryVersionRoundTrips) {
  CpuCheckpoint v1{.policy = "static",
                   .state = {.default_set = {0, 4}},
                   .by_container_id = {{"3a1f", {1, 2}}, {"77be", {3}}}};
  struct Case {
    CheckpointVersion version;
    CpuCheckpoint checkpoint;
  };
  for (Case& c : std::vector<Case>{{CheckpointVersion::kV1, v1},
                                   {CheckpointVersion::kV2, sample()},
                                   {CheckpointVersion::kV3, with_pod_entry()},
                                   {CheckpointVersion::kV4, with_pod_entry()},
                                   {CheckpointVersion::kV2, {.policy = "none"}},
                                   {CheckpointVersion::kV4, {.policy = "none"}}}) {
    const std::string text = encode_checkpoint(c.checkpoint, c.version);
    const auto read = decode_checkpoint(text);
    ASSERT_TRUE(read) << text << ": " << read.error().what;
    c.checkpoint.version = c.version;
    EXPECT_EQ(*read, c.checkpoint) << text;
  }
}

// Structures as go-spew renders them; FNV-1a 32 of these by hand.
TEST(CpuCheckpoint, IsHashedAsGoRendersIt) {
  EXPECT_EQ(fnv1a_32(""), 2166136261U);
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cU);
  EXPECT_EQ(checkpoint_hash_input(with_pod_entry(), CheckpointVersion::kV3),
            "(*state.CPUManagerCheckpoint){PolicyName:(string)static "
            "DefaultCPUSet:(string)0,4-7 Entries:(map[string]map[string]string)map["
            "uid-1:map[app:1 init:1-2] uid-2:map[c:3]] "
            "PodEntries:(state.PodCPUAssignments)map[uid-1:{CPUSet:(cpuset.CPUSet){elems:(map[int]"
            "struct {})map[1:{} 2:{}]}}] Checksum:(checksum.Checksum)0}");
}

TEST(CpuCheckpoint, TheNewestVersionIsReadableByOldKubelets) {
  const std::string text = encode_checkpoint(sample(), CheckpointVersion::kV4);
  EXPECT_EQ(text.substr(0, text.find(",\"data\"")),
            R"({"policyName":"static","defaultCpuSet":"0,4-7","entries":{"uid-1":{"app":"1",)"
            R"("init":"1-2"},"uid-2":{"c":"3"}},"checksum":0)")
      << "V2, unchecked";
}

TEST(CpuCheckpoint, TheNewestVersionHasTheNumbersOfTheAdmission) {
  CpuCheckpoint checkpoint = sample();
  checkpoint.state.admitted["uid-1"]["init"] = 4;
  const std::string text = encode_checkpoint(checkpoint, CheckpointVersion::kV4);
  const auto read = decode_checkpoint(text);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->state, checkpoint.state);
  EXPECT_EQ(text.substr(0, text.find(",\"data\"")).find("admittedCpus"), std::string::npos)
      << "a kubelet reads these fields";
}

TEST(CpuCheckpoint, AChecksumOfZeroOrNoneIsNotVerified) {
  for (const char* const end : {"}", R"(,"checksum":0})"}) {
    const auto read = decode_checkpoint(
        R"({"policyName":"none","defaultCpuSet":"","entries":{"u":{"c":"1"}})" + std::string(end));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->version, CheckpointVersion::kV2);
  }
}

TEST(CpuCheckpoint, EveryFlippedBitIsDetected) {
  for (const auto version : {CheckpointVersion::kV2, CheckpointVersion::kV3}) {
    const CpuCheckpoint checkpoint =
        version == CheckpointVersion::kV2 ? sample() : with_pod_entry();
    const std::string text = encode_checkpoint(checkpoint, version);
    for (std::size_t i = 0; i < text.size(); ++i)
      for (int bit = 0; bit < 7; ++bit) {
        std::string damaged = text;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        const auto read = decode_checkpoint(damaged);
        // The word "checksum" itself: without it there is nothing to verify, as upstream.
        if (read) {
          EXPECT_EQ(read->state, checkpoint.state) << damaged;
        }
      }
  }
  // Cut anywhere, as by a full disk.
  const std::string text = encode_checkpoint(sample(), CheckpointVersion::kV4);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(decode_checkpoint(text.substr(0, length)));
}

TEST(CpuCheckpoint, TheChecksumCoversEveryField) {
  std::string text = encode_checkpoint(sample(), CheckpointVersion::kV2);
  text.insert(text.find("\"checksum\""), R"("podEntries":{"uid-1":{"cpuSet":"1-2"}},)");
  const auto read = decode_checkpoint(text);
  ASSERT_FALSE(read) << "V2's checksum says nothing of podEntries";
  EXPECT_EQ(read.error().kind, Kind::kCorrupt);
}

TEST(CpuCheckpoint, ReportsTheError) {
  struct Case {
    const char* text;
    Kind kind;
    const char* what;
  };
  for (const Case& c : {
           Case{"", Kind::kNotACheckpoint, "not JSON"},
           Case{"[]", Kind::kNotACheckpoint, "not a JSON object"},
           Case{R"({"policyName":3})", Kind::kNotACheckpoint, "policyName: no string"},
           Case{R"({"entries":{"u":{"c":1}}})", Kind::kNotACheckpoint,
                "entries: of no known shape"},
           Case{R"({"podEntries":[]})", Kind::kNotACheckpoint, "podEntries: of no known shape"},
           Case{R"({"checksum":"x"})", Kind::kNotACheckpoint, "checksum: no checksum"},
           Case{R"({"data":7})", Kind::kNotACheckpoint, "data: no string"},
           Case{R"({"policyName":"none","checksum":1})", Kind::kCorrupt, "checkpoint is corrupted"},
           Case{R"({"data":"{}","dataChecksum":0})", Kind::kCorrupt, "checkpoint is corrupted"},
           Case{R"({"entries":{"u":{"c":"1-"}}})", Kind::kBadCpuSet,
                "entries of pod u, container c: strconv.Atoi: parsing \"\": invalid syntax"},
       }) {
    const auto read = decode_checkpoint(c.text);
    ASSERT_FALSE(read) << c.text;
    EXPECT_EQ(read.error().kind, c.kind) << c.text;
    EXPECT_EQ(read.error().what, c.what);
  }
}

TEST(CpuCheckpoint, Version1IsMigratedByContainerId) {
  const CpuCheckpoint v1{.policy = "static",
                         .by_container_id = {{"3a1f", {1, 2}}, {"77be", {3}}, {"9c9c", {4}}}};
  const auto [checkpoint, unknown] =
      migrate_checkpoint(v1, {{"3a1f", {"uid-1", "app"}}, {"77be", {"uid-1", "side"}}});
  EXPECT_EQ(checkpoint.state.entries, (PodCpus{{"uid-1", {{"app", {1, 2}}, {"side", {3}}}}}));
  EXPECT_TRUE(checkpoint.by_container_id.empty());
  EXPECT_EQ(unknown, std::vector<std::string>{"9c9c"}) << "named, not lost";
}

}  // namespace
}  // namespace headroom::act
