// SPDX-License-Identifier: Apache-2.0
#include "act/limits/limit_lowering.h"

#include "base/cgroup_directory.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace headroom::act {
namespace {

constexpr const char* kSubtreeControl = "cgroup.subtree_control";

bool has_controller(int directory, std::string_view controller) {
  std::istringstream file(line_at(directory, kSubtreeControl));
  for (std::string word; file >> word;)
    if (word == controller) return true;
  return false;
}

Result<> enable_in(const Fd& directory, std::string_view controller) {
  if (!directory) return errno_failure("open a cgroup", errno);
  if (has_controller(directory.get(), controller)) return {};
  return write_setting_at(directory.get(), kSubtreeControl, "+" + std::string(controller));
}

}  // namespace

Result<> enable_controller(const std::filesystem::path& root, std::string_view path,
                           std::string_view controller, ControllerScope scope) {
  Fd at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (path.remove_prefix(std::min<std::size_t>(1, path.size())); !path.empty();) {
    if (auto result = enable_in(at, controller); !result) return result;
    const std::string part(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    at.reset(::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return scope == ControllerScope::kChildren ? enable_in(at, controller) : Result<>{};
}

CgroupValues without_systemd_property(const CgroupValues& values) {
  return {.memory_oom_group = values.memory_oom_group, .hugetlb_max = values.hugetlb_max};
}

namespace {

using Clock = std::chrono::steady_clock;

// Bytes of one write, which takes some tens of milliseconds. A stop request is checked between two
// writes.
constexpr std::int64_t kReclaimStep = 32 << 20;
// Pause after the kernel reclaimed less than requested: dirty pages may be written by then.
constexpr std::chrono::milliseconds kPause{200};

// 0, or errno; EAGAIN: less was reclaimed than requested.
int reclaim(const Fd& file, std::int64_t bytes) {
  const std::string text = std::to_string(bytes);
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

}  // namespace

LimitLowering::End reclaim_until_below(std::string name, int cgroup, Bytes max_usage,
                                       Duration timeout, const std::stop_token& stop) {
  LimitLowering::End end{.name = std::move(name)};
  const Fd current(::openat(cgroup, "memory.current", O_RDONLY | O_CLOEXEC));
  const Fd reclaim_file(::openat(cgroup, "memory.reclaim", O_WRONLY | O_CLOEXEC));
  if (!current || !reclaim_file) {
    end.error = errno;
    return end;
  }
  const Clock::time_point until = Clock::now() + timeout;
  for (;;) {
    const auto used = number_of(current);
    if (!used) {
      end.error = EIO;
      return end;
    }
    end.in_use = Bytes{*used};
    end.reached = end.in_use <= max_usage;
    if (end.reached || stop.stop_requested() || Clock::now() >= until) return end;
    const int error = reclaim(reclaim_file, std::min((end.in_use - max_usage).count, kReclaimStep));
    if (error == EAGAIN || error == EINTR) {
      std::this_thread::sleep_for(kPause);
    } else if (error != 0) {
      end.error = error;
      return end;
    }
  }
}

void LimitLoweringThreads::begin(const std::string& name, Fd cgroup, Bytes max_usage,
                                 Duration timeout) {
  auto& action = async_actions_[name];
  if (action) return;
  action = std::make_unique<RunningAction>();
  action->thread = std::jthread([raw = action.get(), name, directory = std::move(cgroup), max_usage,
                                 timeout](const std::stop_token& stop) {
    report::set_thread_name("reclaim");
    raw->end = {.name = name, .error = EIO};  // if it throws
    log::log_exceptions("reclaim memory", [&] {
      raw->end = reclaim_until_below(name, directory.get(), max_usage, timeout, stop);
    });
    raw->finished = true;
  });
}

std::vector<LimitLowering::End> LimitLoweringThreads::collect_finished() {
  std::vector<End> ended;
  std::erase_if(async_actions_, [&](auto& entry) {
    if (!entry.second->finished) return false;
    ended.push_back(std::move(entry.second->end));
    return true;
  });
  return ended;
}

}  // namespace headroom::act
