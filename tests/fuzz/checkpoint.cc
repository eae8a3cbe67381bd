// SPDX-License-Identifier: Apache-2.0
// cpu_manager_state and memory_manager_state, damaged in any way: read right or refused.
#include "act/cpus/cpu_checkpoint.h"
#include "act/memory/memory_checkpoint.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  if (const auto memory = act::decode_memory_checkpoint(fuzz::text_of(bytes, size))) {
    const auto again = act::decode_memory_checkpoint(
        encode_memory_checkpoint(*memory, act::MemoryCheckpointVersion::kV2));
    fuzz::promise(again && again->state == memory->state, "what is written is read as the same");
  }
  const auto read = act::decode_checkpoint(fuzz::text_of(bytes, size));
  if (!read || !read->by_container_id.empty()) return 0;
  const auto again = act::decode_checkpoint(encode_checkpoint(*read, act::CheckpointVersion::kV4));
  fuzz::promise(again && again->state == read->state, "what is written is read as the same");
  return 0;
}
