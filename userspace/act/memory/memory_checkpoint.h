// SPDX-License-Identifier: Apache-2.0
// MemoryCheckpoint: the kubelet's memory_manager_state file as text and value (kubelet:
// cm/memorymanager/state). No file is touched here.
#pragma once

#include "act/cpus/cpu_checkpoint.h"
#include "judge/memory/memory_state.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace headroom::act {

// Which kubelets write it.
enum class MemoryCheckpointVersion : std::uint8_t {
  kV1,  // all
  kV2,  // 1.36 with PodLevelResourceManagers: podEntries
};

struct MemoryCheckpoint {
  std::string policy;  // "None", "Static"
  MemoryState state{};
  // Memory of pods as a whole (PodLevelResourceManagers): kept as read, never given out.
  std::map<std::string, MemoryBlocks, std::less<>> pod_entries{};
  MemoryCheckpointVersion version = MemoryCheckpointVersion::kV1;  // what it was read from

  friend bool operator==(const MemoryCheckpoint&, const MemoryCheckpoint&) = default;
};

// Either version, while a kubelet reads the second only with its gate on. A checksum of 0 is not
// verified, as upstream.
tl::expected<MemoryCheckpoint, CheckpointError> decode_memory_checkpoint(std::string_view text);

// Byte for byte the kubelet's. The first version cannot hold pod_entries.
std::string encode_memory_checkpoint(const MemoryCheckpoint& checkpoint,
                                     MemoryCheckpointVersion version);

// The text that the checksum is of.
std::string memory_hash_input(const MemoryCheckpoint& checkpoint, MemoryCheckpointVersion version);

}  // namespace headroom::act
