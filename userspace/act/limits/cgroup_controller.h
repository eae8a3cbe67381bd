// SPDX-License-Identifier: Apache-2.0
// A controller that systemd knows nothing of, and so neither gives nor takes: hugetlb.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace headroom::act {

enum class ControllerScope {
  kItself,    // the cgroup has it
  kChildren,  // and so have those directly below
};

// From the root on down to the cgroup at `path` ("/kubepods.slice"), wherever it is not yet.
Result<> enable_controller(const std::filesystem::path& root, std::string_view path,
                           std::string_view controller, ControllerScope scope);

}  // namespace headroom::act
