// SPDX-License-Identifier: Apache-2.0
// cpu_manager_state: the kubelet's file read, its checksum recomputed, and written again.
#include "act/cpus/cpu_checkpoint.h"

#include "judge/vectors/lines.h"

#include <string>

namespace headroom::vectors {
namespace {

using act::CheckpointVersion;

class CpuCheckpointVectors : public VectorTest {};

TEST_P(CpuCheckpointVectors, Agree) {
  const auto decoded = act::decode_checkpoint(text("file"));
  ASSERT_TRUE(decoded) << decoded.error().what;
  EXPECT_EQ(decoded->version, CheckpointVersion::kV2);
  EXPECT_EQ(act::fnv1a_32(text("hash_input")), line().at("checksum"));

  // The kubelet hashes a state without entries as <nil> or map[], by how it came to be; ours writes
  // the latter, as it does after it was read once.
  std::string hash_input = text("hash_input");
  std::string file = text("file");
  if (const auto nil = hash_input.find("<nil>"); nil != std::string::npos) {
    hash_input.replace(nil, 5, "map[]");
    const auto checksum = std::to_string(line().at("checksum").get<std::uint32_t>());
    file.replace(file.find(checksum), checksum.size(), std::to_string(act::fnv1a_32(hash_input)));
  }
  EXPECT_EQ(act::checkpoint_hash_input(*decoded, CheckpointVersion::kV2), hash_input);
  EXPECT_EQ(act::encode_checkpoint(*decoded, CheckpointVersion::kV2), file);

  auto again = act::decode_checkpoint(act::encode_checkpoint(*decoded, CheckpointVersion::kV4));
  ASSERT_TRUE(again) << again.error().what;
  again->version = CheckpointVersion::kV2;
  EXPECT_EQ(*again, *decoded);
}

INSTANTIATE_TEST_SUITE_P(Lines, CpuCheckpointVectors,
                         testing::ValuesIn(lines_of("cpu_checkpoint.jsonl")), case_name);

// Files of 1.36 with and without its alpha gate PodLevelResourceManagers, whole and damaged. A
// kubelet without the gate refuses what one with the gate has written; ours reads both.
class CpuCheckpoint136Vectors : public VectorTest {
 protected:
  bool has_gate() const { return line().at("gates").at("PodLevelResourceManagers").get<bool>(); }
  bool is_whole() const {
    const auto change = line().value("change", "");
    return change.empty() || change == "unknown field" || change == "checksum zero" ||
           change == "another policy";
  }
};

TEST_P(CpuCheckpoint136Vectors, Agree) {
  const auto decoded = act::decode_checkpoint(text("file"));
  ASSERT_EQ(decoded.has_value(), is_whole());
  if (!decoded) {
    EXPECT_TRUE(line().contains("error"));
    return;
  }
  const auto written_as = text("format") == "v3" ? CheckpointVersion::kV3 : CheckpointVersion::kV2;
  EXPECT_EQ(act::checkpoint_hash_input(*decoded, written_as), text("hash_input"));
  if (line().contains("stored_after_load")) {
    const auto stored_as = has_gate() ? CheckpointVersion::kV3 : CheckpointVersion::kV2;
    EXPECT_EQ(act::encode_checkpoint(*decoded, stored_as), text("stored_after_load"));
  } else if (has_gate()) {
    EXPECT_NE(decoded->policy, text("configured_policy"));
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, CpuCheckpoint136Vectors,
                         testing::ValuesIn(lines_of("cpu_checkpoint_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
