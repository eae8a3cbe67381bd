// SPDX-License-Identifier: Apache-2.0
#include "observe/node/kubelet_process.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

// As the kernel keeps them, 15 letters; k3s is a kubelet in one program with the rest.
constexpr auto kNames = std::to_array<std::string_view>({"kubelet", "k3s-server", "k3s-agent"});

}  // namespace

bool kubelet_runs(const fs::path& proc) {
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().native().find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream comm(at->path() / "comm");
    std::string name;
    if (std::getline(comm, name) && std::ranges::find(kNames, name) != kNames.end()) return true;
  }
  return false;
}

}  // namespace headroom::observe
