// SPDX-License-Identifier: Apache-2.0
// write_atomically(): replaces a file; a reader sees the old content or the new, never a part.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace headroom {

// The steps of a write; tests end the process after each.
enum class WriteStep : std::uint8_t { kCreated, kHalfWritten, kWritten, kSynced, kRenamed };
using AtStep = std::function<void(WriteStep)>;

struct AtomicWrite {
  mode_t mode = 0600;
  // Synced to disk, with its directory, so that it survives a crash of the machine. Not needed in
  // /run, nor for state that is void after a boot.
  bool durable = false;
  bool make_directory = false;  // if it is missing
  AtStep at = nullptr;
};

// Writes a hidden file beside it, ".NAME.new", and renames it. On an error the old file is
// unchanged and the hidden one is removed.
Result<> write_atomically(const std::filesystem::path& path, std::string_view text,
                          const AtomicWrite& options = {});

}  // namespace headroom
