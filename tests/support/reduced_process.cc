// SPDX-License-Identifier: Apache-2.0
#include "support/reduced_process.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace headroom::test {

void sleep_reduced(const Reduced& how, const std::filesystem::path& directory) {
  if (::chdir(directory.c_str()) != 0) ::_exit(1);
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    if ((how.bounding >> capability & 1) == 0) ::prctl(PR_CAPBSET_DROP, capability);
  if (::setresuid(how.uid, how.uid, how.uid) != 0) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{1, allow};
  if (how.filtered && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(1);
  ::execl("/bin/sleep", "sleep", "60", nullptr);
  ::_exit(1);
}

std::string privileges_in(const std::filesystem::path& status) {
  constexpr std::array<std::string_view, 6> kNames{"Cap", "NoNewPrivs", "Uid",
                                                   "Gid", "Groups",     "Seccomp:"};
  std::istringstream lines(text_of(status));
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (std::ranges::any_of(kNames, [&](std::string_view name) { return line.starts_with(name); }))
      found += line + "\n";
  return found;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace headroom::test
