// SPDX-License-Identifier: Apache-2.0
// Replaces a file atomically: a reader sees the old content or the new.
//
// Not synced: meant for /run, whose content is lost with the machine. act::write_durably() is for
// files that must survive.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string_view>

namespace headroom::kube {

// By way of a hidden file beside it, which readers of the directory pass over. Mode 0644.
Result<> write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace headroom::kube
