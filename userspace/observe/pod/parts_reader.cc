// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/parts_reader.h"

#include "base/file_io.h"
#include "base/process_stat.h"
#include "observe/pod/pod_cgroup_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

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

namespace {

// A small file of the cgroup, or of a process, into `text`.
std::string_view read_into(std::span<char> text, int directory, const char* file) {
  const Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
  std::size_t size = 0;
  while (fd && size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  return {text.data(), size};
}

// Of "VmSwap:     1024 kB".
std::int64_t number_after(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + key.size());
  std::int64_t value = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

std::string_view status_of(pid_t pid, std::span<char> text) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/status", pid);
  return read_into(text, AT_FDCWD, path);
}

// First process of a pid namespace of its own: all others in it die with it.
bool is_an_init(pid_t pid) {
  char text[4096];
  const std::string_view status = status_of(pid, text);
  constexpr std::string_view kKey = "\nNSpid:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return false;
  const std::string_view line =
      status.substr(at + kKey.size(), status.find('\n', at + 1) - at - kKey.size());
  return line.ends_with("\t1") && line.find('\t', 1) != std::string_view::npos;
}

std::optional<Bytes> known(hr_u64 value, bool valid) {
  if (!valid || value >= HR_NO_LIMIT) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(value)};
}

Bytes request_of(const Container& container) {
  const auto request = container.requests.find("memory");
  return Bytes{request == container.requests.end() ? 0 : request->second.value()};
}

}  // namespace

bool PartsReader::set_options(const PartsOptions& wanted) {
  if (options_ == wanted) return false;
  options_ = wanted;
  return true;
}

void PartsReader::set_targets(std::span<const PodReading> pods, const CgroupInventory& inventory,
                              PodRegistry& registry) {
  for (const PodReading& pod : pods)
    registry.set_parts(pod.cgroup, nullptr);
  targets_.clear();
  members_.clear();
  page_size_ = ::sysconf(_SC_PAGESIZE);
  std::vector<const PodReading*> asked;
  for (const PodReading& pod : pods)
    if (options_.limits || pod.unit.value_or(options_.unit) != EvictionUnit::kPod)
      asked.push_back(&pod);
  if (asked.empty()) return;
  children_.clear();
  inventory.each([&](const KnownCgroup& each) { children_[each.parent.value].push_back(&each); });
  for (const PodReading* pod : asked) {
    auto target = std::make_unique<Target>();
    target->pod = pod->cgroup;
    target->unit = pod->unit.value_or(options_.unit);
    add_members(*pod, inventory, *target);
    for (Member& member : target->members)
      members_[member.id.value] = &member;
    registry.set_parts(pod->cgroup, &target->parts);
    targets_.push_back(std::move(target));
  }
  children_.clear();
}

void PartsReader::add_members(const PodReading& pod, const CgroupInventory& inventory,
                              Target& target) {
  const KnownCgroup* own = inventory.find(pod.cgroup);
  if (!own) return;
  target.members.push_back({.id = own->id, .directory = own->directory.get()});
  // Grows as it goes: parents first.
  for (std::size_t i = 0; i < target.members.size(); ++i) {
    auto below = children_[target.members[i].id.value];
    std::sort(below.begin(), below.end(),
              [](const KnownCgroup* a, const KnownCgroup* b) { return a->id < b->id; });
    for (const KnownCgroup* child : below) {
      const std::size_t place = target.members.size();
      Member member{.id = child->id,
                    .parent = i,
                    .container = i == 0 ? place : target.members[i].container,
                    .directory = child->directory.get()};
      const Container* container =
          i == 0 && container_at_ ? container_at_(*pod.pod, child->path) : nullptr;
      if (container) member.request = request_of(*container);
      target.members.push_back(member);
    }
  }
}

void PartsReader::read(Instant at, const RecordOf& record_of, const Waits& waits) {
  if (targets_.empty()) return;
  processes_read_ = 0;
  sum_stalls(waits);
  for (const auto& target : targets_) {
    if (target->unit != EvictionUnit::kPod) read_groups(*target, at);
    if (target->unit == EvictionUnit::kProcess) read_processes(*target, at);
    fill(*target, record_of);
  }
}

void PartsReader::sum_stalls(const Waits& waits) {
  const bool watched = options_.limits && waits.stalls;
  const bool all_listed = watched && waits.stalls->lost == 0;
  for (auto& [id, member] : members_)
    member->stalled = all_listed ? std::optional(Duration::zero()) : std::nullopt;
  if (!watched) return;
  for (std::size_t i = 0; i < waits.stalls->ids.size(); ++i)
    if (const auto found = members_.find(waits.stalls->ids[i]); found != members_.end())
      found->second->stalled =
          Duration(static_cast<std::int64_t>(waits.stalls->values[i].causes[HR_STALL_HIGH].ns));
}

void PartsReader::read_groups(Target& target, Instant at) {
  if (target.groups_at != Instant{} && at - target.groups_at < kGroupsEvery) return;
  target.groups_at = at;
  for (Member& member : target.members) {
    char text[8];
    member.oom_group = read_into(text, member.directory, "memory.oom.group").starts_with("1");
  }
}

// The highest that dies as one, of those the cgroup lies in.
CgroupId PartsReader::group_of(const Target& target, std::size_t member) {
  CgroupId group{};
  for (std::size_t at = member;; at = target.members[at].parent) {
    if (target.members[at].oom_group) group = target.members[at].id;
    if (at == 0) return group;
  }
}

void PartsReader::read_processes(Target& target, Instant at) {
  if (target.processes_at != Instant{} && at - target.processes_at < kProcessesEvery) return;
  if (processes_read_ >= kMaxProcesses) return;
  target.processes_at = at;
  constexpr std::size_t kProcs = std::size_t{64} << 10;
  procs_.resize(kProcs);
  std::optional<ProcessReading> largest;
  std::size_t home = 0;
  for (std::size_t i = 0; i < target.members.size(); ++i) {
    const std::string_view list = read_into(procs_, target.members[i].directory, "cgroup.procs");
    const char* place = list.data();
    while (place < list.data() + list.size()) {
      pid_t pid = 0;
      place = std::from_chars(place, list.data() + list.size(), pid).ptr + 1;
      if (pid <= 0) continue;  // of another pid namespace
      ++processes_read_;
      const auto stat = process_stat(pid);
      if (!stat || stat->zombie) continue;
      Bytes held{stat->resident_pages * page_size_};
      char text[4096];
      held.count += number_after(status_of(pid, text), "\nVmSwap:") << 10;
      if (largest && held <= largest->held) continue;
      largest = ProcessReading{
          .name = stat->name, .comm = stat->comm, .cgroup = target.members[i].id, .held = held};
      home = i;
    }
  }
  if (largest) {
    largest->group = group_of(target, home);
    const std::size_t container = target.members[home].container;
    if (largest->group == CgroupId{} && is_an_init(largest->name.pid))
      largest->group = target.members[container].id;
  }
  target.parts.largest = largest;
}

void PartsReader::fill(Target& target, const RecordOf& record_of) {
  PodParts& parts = target.parts;
  parts.parts.clear();
  parts.oom_group = !target.members.empty() && target.members[0].oom_group;
  const auto add = [](std::optional<Duration>& sum, const std::optional<Duration>& stalled) {
    sum = sum && stalled ? std::optional(*sum + *stalled) : std::nullopt;
  };
  std::optional all(Duration::zero());
  for (std::size_t i = 0; i < target.members.size(); ++i) {
    const Member& member = target.members[i];
    add(all, member.stalled);
    const bool container = i != 0 && member.parent == 0;
    if (i == 0 || (!container && !member.oom_group)) continue;
    PartReading part{.cgroup = member.id,
                     .container = container,
                     .oom_group = member.oom_group,
                     .memory_request = member.request};
    if (const hr_record* record = record_of(member.id)) {
      part.populated = record->populated != 0;
      part.usage = known(record->memory_usage, record->valid & HR_MEMORY_USAGE);
      const bool limits_known =
          (record->valid & HR_MEMORY_LIMITS) && record->memory_max != HR_UNKNOWN;
      part.high = known(record->memory_high, limits_known);
      part.max = known(record->memory_max, limits_known);
      part.working_set = working_set(*record);
      part.release = held_by_processes(*record);
    }
    if (container) {
      part.stalled = Duration::zero();
      for (const Member& each : target.members)
        if (each.container == i) add(part.stalled, each.stalled);
    }
    parts.parts.push_back(part);
  }
  parts.stalled = all;
}

}  // namespace headroom::observe
