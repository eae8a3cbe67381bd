// SPDX-License-Identifier: Apache-2.0
// write_whole(): a file in memory that is the old one or the new one for whoever reads it.
//
// Not synced: it lives in /run, and after a crash of the machine it is of no use. What must outlast
// one is act::write_durably's.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string_view>

namespace headroom::kube {

// By way of a hidden file beside it, which readers of the directory pass over. Mode 0644.
Result<> write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace headroom::kube
