// SPDX-License-Identifier: Apache-2.0
// write_durably(): a file that is the old one or the new one at every instant, whatever ends when.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace headroom::act {

// What has been done; for tests, which end there.
enum class WriteStep : std::uint8_t { kCreated, kHalfWritten, kWritten, kSynced, kRenamed };
using AtStep = std::function<void(WriteStep)>;

// A new file beside it (".new"), written, synced, renamed over it, and the directory synced. On an
// error the old file is as it was.
Result<> write_durably(const std::filesystem::path& path, std::string_view text, mode_t mode,
                       const AtStep& at = nullptr);

}  // namespace headroom::act
