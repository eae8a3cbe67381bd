// SPDX-License-Identifier: Apache-2.0
// memory_manager_state: the kubelet's file read, its checksum recomputed, and written again.
#include "act/memory/memory_checkpoint.h"

#include "judge/vectors/lines.h"

#include <string>

namespace headroom::vectors {
namespace {

using act::CheckpointError;
using act::MemoryCheckpointVersion;

class MemoryCheckpointVectors : public VectorTest {};

TEST_P(MemoryCheckpointVectors, Agree) {
  const auto decoded = act::decode_memory_checkpoint(text("file"));
  const auto error = line().value("error", "");
  const bool written_as_v2 = text("format") == "v2";
  const bool gate_on = line().at("gates").at("PodLevelResourceManagers").get<bool>();
  const auto change = line().contains("change") ? text("change") : "";

  if (change == "cut short") {
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().kind, CheckpointError::Kind::kNotACheckpoint);
    return;
  }
  EXPECT_EQ(act::fnv1a_32(text("hash_input")), line().at("checksum"));
  // A kubelet reads what was written with the gate on only with the gate on; this reads both.
  const bool damaged =
      change == "checksum off by one" || change == "no entries key" || change == "free changed";
  if (!damaged && written_as_v2 && !gate_on)
    EXPECT_NE(error.find("checkpoint is corrupted"), std::string::npos);
  else
    EXPECT_EQ(damaged, error.find("checkpoint is corrupted") != std::string::npos) << error;
  if (damaged) {
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().what, "checkpoint is corrupted");
    return;
  }
  ASSERT_TRUE(decoded) << decoded.error().what;
  if (change == "another policy") EXPECT_NE(decoded->policy, text("configured_policy"));
  EXPECT_EQ(decoded->version,
            written_as_v2 ? MemoryCheckpointVersion::kV2 : MemoryCheckpointVersion::kV1);
  EXPECT_EQ(act::memory_hash_input(*decoded, decoded->version), text("hash_input"));
  if (!line().contains("stored_after_load")) return;
  const auto stored = gate_on ? MemoryCheckpointVersion::kV2 : MemoryCheckpointVersion::kV1;
  EXPECT_EQ(act::encode_memory_checkpoint(*decoded, stored), text("stored_after_load"));
}

INSTANTIATE_TEST_SUITE_P(Lines, MemoryCheckpointVectors,
                         testing::ValuesIn(lines_of("memory_checkpoint.jsonl")), case_name);

TEST(MemoryCheckpoint, RefusesOtherShapes) {
  for (const auto* const text :
       {"", "[]", R"({"machineState":[]})", R"({"machineState":{"x":{}}})",
        R"({"machineState":{"64":{}}})", R"({"machineState":{"0":{"cells":[-1]}}})",
        R"({"machineState":{"0":{"memoryMap":{"memory":{"free":18446744073709551615}}}}})",
        R"({"entries":{"a":{"c":[1]}}})", R"({"entries":{"a":{"c":{}}}})", R"({"policyName":1})"}) {
    const auto decoded = act::decode_memory_checkpoint(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().kind, CheckpointError::Kind::kNotACheckpoint) << text;
  }
}

}  // namespace
}  // namespace headroom::vectors
