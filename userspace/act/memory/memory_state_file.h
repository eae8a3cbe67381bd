// SPDX-License-Identifier: Apache-2.0
// MemoryStateFile: the kubelet's memory_manager_state on disk: which container has memory on which
// NUMA nodes, kept across a crash.
#pragma once

#include "act/cpus/cpu_checkpoint.h"
#include "act/memory/memory_checkpoint.h"

#include <headroom/result.h>

#include <optional>
#include <string>

namespace headroom::act {

class MemoryStateFile : public CheckpointFile {
 public:
  using CheckpointFile::CheckpointFile;

  // Of any kubelet. Absent: there is none yet. An error is of the file, which stays where it is:
  // it could not be read, or is damaged.
  Result<std::optional<MemoryCheckpoint>> load() const {
    const auto text = read();
    if (!text) return tl::make_unexpected(text.error());
    if (!*text) return std::nullopt;
    auto checkpoint = decode_memory_checkpoint(**text);
    if (!checkpoint) return failure("read " + path().string() + ": " + checkpoint.error().what);
    return std::move(*checkpoint);
  }

  // In the form every kubelet reads. Writes nothing that it wrote already.
  Result<> save(const std::string& policy, const MemoryState& state) {
    return write(
        encode_memory_checkpoint({.policy = policy, .state = state}, MemoryCheckpointVersion::kV1));
  }
};

}  // namespace headroom::act
