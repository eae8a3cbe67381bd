// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/bpf_costs.h"

#include "base/file_io.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

std::optional<bpf_prog_info> info_of(int fd) {
  bpf_prog_info info{};
  std::uint32_t length = sizeof(info);
  if (::bpf_obj_get_info_by_fd(fd, &info, &length) != 0) return std::nullopt;
  return info;
}

std::optional<int> descriptor(const fs::path& link) {
  const std::string name = link.filename();
  int fd = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), fd);
  return parsed.ec == std::errc{} ? std::optional(fd) : std::nullopt;
}

}  // namespace

BpfCosts BpfCosts::of_this_process() {
  BpfCosts costs;
  std::error_code error;
  for (const auto& link : fs::directory_iterator("/proc/self/fd", error)) {
    std::error_code gone;
    if (fs::read_symlink(link.path(), gone) != "anon_inode:bpf-prog") continue;
    const auto fd = descriptor(link.path());
    if (const auto info = fd ? info_of(*fd) : std::nullopt) costs.ids_.push_back(info->id);
  }
  std::sort(costs.ids_.begin(), costs.ids_.end());
  costs.ids_.erase(std::unique(costs.ids_.begin(), costs.ids_.end()), costs.ids_.end());
  return costs;
}

std::vector<BpfCost> BpfCosts::read() const {
  std::vector<BpfCost> costs;
  for (const std::uint32_t id : ids_) {
    const Fd fd(::bpf_prog_get_fd_by_id(id));
    const auto info = fd ? info_of(fd.get()) : std::nullopt;
    if (!info || info->run_cnt == 0) continue;
    // Two programs may have one name, of 15 letters: they are one series.
    const auto same = std::find_if(costs.begin(), costs.end(),
                                   [&](const BpfCost& cost) { return cost.program == info->name; });
    BpfCost& cost =
        same == costs.end() ? costs.emplace_back(BpfCost{.program = info->name}) : *same;
    cost.run += std::chrono::nanoseconds(info->run_time_ns);
    cost.runs += info->run_cnt;
  }
  return costs;
}

}  // namespace headroom::observe
