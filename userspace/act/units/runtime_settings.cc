// SPDX-License-Identifier: Apache-2.0
#include "act/units/runtime_settings.h"

#include <unistd.h>

namespace headroom::act {

void remove_runtime_settings(const std::filesystem::path& settings, const std::string& unit,
                             std::initializer_list<const char*> properties) {
  const std::string directory = (settings / (unit + ".d")).native();
  for (const char* property : properties)
    ::unlink((directory + "/50-" + property + ".conf").c_str());
  ::rmdir(directory.c_str());
}

}  // namespace headroom::act
