// SPDX-License-Identifier: Apache-2.0
// Remove a directory and all below it, on its own filesystem, following no symbolic link.
#pragma once

#include <headroom/result.h>

#include <stop_token>
#include <string>

namespace headroom::act {

// A directory that is not there, or a mount point that stays when emptied, is no error. The first
// thing that cannot be removed is the error; the rest is removed all the same.
Result<> remove_tree(const std::string& path, const std::stop_token& stop);

}  // namespace headroom::act
