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

}  // namespace
}  // namespace headroom::vectors
