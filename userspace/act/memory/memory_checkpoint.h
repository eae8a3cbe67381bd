// SPDX-License-Identifier: Apache-2.0
// MemoryCheckpoint: the kubelet's memory_manager_state file as text and value (kubelet:
// cm/memorymanager/state). No file is touched here.
#pragma once

#include "act/cpus/cpu_checkpoint.h"
#include "judge/memory/memory_state.h"

#include <headroom/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace headroom::act {

// The versions of the file, by the kubelets that write them.
enum class MemoryCheckpointVersion : std::uint8_t {
  kV1,  // all
  kV2,  // 1.36 with PodLevelResourceManagers: podEntries
};

struct MemoryCheckpoint {
  std::string policy;  // "None", "Static"
  MemoryState state{};
  MemoryCheckpointVersion version = MemoryCheckpointVersion::kV1;  // what it was read from

  friend bool operator==(const MemoryCheckpoint&, const MemoryCheckpoint&) = default;
};

// Decodes either version; a kubelet reads the second only with its gate on. A checksum of 0 is not
// verified, as upstream.
tl::expected<MemoryCheckpoint, CheckpointError> decode_memory_checkpoint(std::string_view text);

// Identical to the kubelet's. The first version cannot hold the pools of pods.
std::string encode_memory_checkpoint(const MemoryCheckpoint& checkpoint,
                                     MemoryCheckpointVersion version);

// The text over which the checksum is computed.
std::string memory_hash_input(const MemoryCheckpoint& checkpoint, MemoryCheckpointVersion version);

// MemoryStateFile: the kubelet's memory_manager_state on disk: which container has memory on which
// NUMA nodes, kept across a crash.

class MemoryStateFile : public CheckpointFile {
 public:
  using CheckpointFile::CheckpointFile;

  // Reads a file of any kubelet version. Absent: there is no file. Error: the file could not be
  // read or is damaged; it stays where it is.
  Result<std::optional<MemoryCheckpoint>> load() const {
    const auto text = read();
    if (!text) return tl::make_unexpected(text.error());
    if (!*text) return std::nullopt;
    auto checkpoint = decode_memory_checkpoint(**text);
    if (!checkpoint) return failure("read " + path().string() + ": " + checkpoint.error().what);
    return std::move(*checkpoint);
  }

  // Writes the form that every kubelet reads, or with pools of pods the one of 1.36, if the content
  // has changed.
  Result<> save(const std::string& policy, const MemoryState& state) {
    const auto version =
        state.pod_entries.empty() ? MemoryCheckpointVersion::kV1 : MemoryCheckpointVersion::kV2;
    return write(encode_memory_checkpoint({.policy = policy, .state = state}, version));
  }
};

}  // namespace headroom::act
