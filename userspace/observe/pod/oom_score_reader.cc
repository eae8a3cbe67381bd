// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/oom_score_reader.h"

#include "observe/pod/pod_cgroup_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace headroom::observe {
namespace {

constexpr int kGuaranteed = -997, kPause = -998;

// Only the beginning of a long list: some hundred processes, any of which will do.
std::string_view read_text(int directory, const char* file, std::array<char, 4096>& buffer) {
  const Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

std::optional<int> score_of(const std::string& process) {
  std::array<char, 4096> buffer;
  const std::string_view text = read_text(AT_FDCWD, (process + "/oom_score_adj").c_str(), buffer);
  int score = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), score);
  return read.ec == std::errc{} ? std::optional(score) : std::nullopt;
}

}  // namespace

bool has_protected_process(const KnownCgroup& cgroup, const std::string& proc) {
  const std::string_view path = cgroup.path;
  if (is_conmon(path.substr(path.rfind('/') + 1))) return false;
  std::array<char, 4096> buffer;
  std::string_view pids = read_text(cgroup.directory.get(), "cgroup.procs", buffer);
  for (std::size_t end; (end = pids.find('\n')) != std::string_view::npos;
       pids.remove_prefix(end + 1)) {
    const auto score = score_of(proc + "/" + std::string(pids.substr(0, end)));
    if (score && *score <= kGuaranteed && *score != kPause) return true;
  }
  return false;
}

}  // namespace headroom::observe
