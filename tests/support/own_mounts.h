// SPDX-License-Identifier: Apache-2.0
// A child process with mounts of its own, to see what happens where files cannot be written: root
// may write what permissions forbid, but not a read-only mount.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

namespace headroom::test {

// What `body`, which runs in the child, returns: 0 to 99. Absent: no mount can be made here, for
// which root is needed.
std::optional<int> with_own_mounts(const std::function<int()>& body);

// In the child: the directory or file, mounted over itself; false: it was not done.
bool mount_read_only(const std::filesystem::path& file);
// Undone; at the end of the child it is so by itself.
bool mount_writable_again(const std::filesystem::path& file);

}  // namespace headroom::test
