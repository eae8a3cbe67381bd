// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_setting_writer.h"

#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace headroom::act {

CgroupValues without_systemd_property(const CgroupValues& values) {
  return {.memory_oom_group = values.memory_oom_group, .hugetlb_max = values.hugetlb_max};
}

Result<> write_cgroup_setting(const std::filesystem::path& cgroup, const CgroupSetting& setting) {
  const std::filesystem::path path = cgroup / setting.file;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno_failure("open " + path.native(), errno);
  if (::write(file.get(), setting.value.data(), setting.value.size()) < 0)
    return errno_failure("write " + setting.value + " to " + path.native(), errno);
  return {};
}

}  // namespace headroom::act
