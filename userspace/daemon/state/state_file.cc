// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/state_file.h"

#include <fstream>

namespace headroom::daemon {

namespace fs = std::filesystem;

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

Error move_damaged_file(const fs::path& path, const std::string& why) {
  std::error_code ignored;
  fs::rename(path, path.string() + ".damaged", ignored);
  return {"read " + path.string() + ": " + why + "; set aside as .damaged", 0};
}

}  // namespace headroom::daemon
