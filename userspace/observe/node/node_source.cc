// SPDX-License-Identifier: Apache-2.0
#include "observe/node/node_source.h"

#include "observe/cgroup/stat_text.h"
#include "observe/node/zone_reserve.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string_view>

namespace headroom::observe {
namespace {

constexpr Duration kTotalsHold = std::chrono::seconds(10);

using Buffer = std::array<char, 8192>;

template <std::size_t kSize>
std::string_view text_of(const Fd& file, std::array<char, kSize>& buffer) {
  if (!file) return {};
  const ssize_t got = pread(file.get(), buffer.data(), buffer.size(), 0);
  return got > 0 ? std::string_view(buffer.data(), static_cast<std::size_t>(got))
                 : std::string_view();
}

Fd open_file(const std::filesystem::path& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::int64_t clamped(std::uint64_t value) {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

// What is left of a capacity; never below zero (kubernetes 52386, 114332: the difference wrapped).
std::int64_t left(std::uint64_t capacity, std::uint64_t used) {
  return capacity > used ? clamped(capacity - used) : 0;
}

// "0.00 0.01 0.05 1/207 4711": the number after the slash is all tasks, threads included.
std::optional<std::uint64_t> tasks_in(std::string_view loadavg) {
  const std::size_t slash = loadavg.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  loadavg.remove_prefix(slash + 1);
  const std::size_t end = loadavg.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  return count_in(loadavg.substr(0, end));
}

void observe_filesystem(const std::filesystem::path& path, Instant at, Signal available,
                        Signal inodes, Observations& all) {
  of(all, available).reset();
  of(all, inodes).reset();
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) < 0) return;
  of(all, available) = {clamped(space.f_bavail * space.f_frsize),
                        clamped(space.f_blocks * space.f_frsize), at};
  // btrfs and the like make inodes as they go and say 0 of 0: unknown, not exhausted.
  if (space.f_files > 0) of(all, inodes) = {clamped(space.f_ffree), clamped(space.f_files), at};
}

// What can be allocated before the kernel's OOM killer acts: as si_mem_available() (mm/show_mem.c),
// which is free memory, page cache and reclaimable slab less the part of both that is in use, but
// less what no process can have (reserved_pages()) instead of all below the high watermarks, and
// without the page cache that memory.min keeps.
std::optional<std::uint64_t> allocatable_memory(std::string_view meminfo,
                                                std::optional<std::uint64_t> free,
                                                std::uint64_t reserve, std::uint64_t low,
                                                std::uint64_t kept) {
  const auto active = meminfo_bytes(meminfo, "Active(file):");
  const auto inactive = meminfo_bytes(meminfo, "Inactive(file):");
  const auto slab = meminfo_bytes(meminfo, "KReclaimable:");
  if (!free || !active || !inactive || !slab) return meminfo_bytes(meminfo, "MemAvailable:");
  const auto reclaimable = [low](std::uint64_t bytes) { return bytes - std::min(bytes / 2, low); };
  const std::uint64_t cache = *active + *inactive;
  const std::uint64_t sum = *free + reclaimable(cache - std::min(cache, kept)) + reclaimable(*slab);
  return sum > reserve ? sum - reserve : 0;
}

// Of the page cache of this cgroup and those below it, what memory.min keeps: it is reclaimed only
// while the cgroup holds more than that (mem_cgroup_protection(), mm/vmscan.c).
std::uint64_t kept_cache(const hr_record& record) {
  constexpr std::uint32_t kNeeded = HR_MEMORY_LIMITS | HR_MEMORY_USAGE | HR_MEMORY_STAT;
  if ((record.valid & kNeeded) != kNeeded || record.memory_min == 0) return 0;
  if (record.memory_min == HR_UNKNOWN || record.active_file == HR_UNKNOWN ||
      record.inactive_file == HR_UNKNOWN)
    return 0;
  const std::uint64_t cache = record.active_file + record.inactive_file;
  const std::uint64_t above =
      record.memory_usage > record.memory_min ? record.memory_usage - record.memory_min : 0;
  return cache > above ? cache - above : 0;
}

}  // namespace

NodeSource::NodeSource(const Options& options)
    : options_(options),
      memory_stat_(open_file(options.cgroup_root / "memory.stat")),
      meminfo_(open_file(options.proc / "meminfo")),
      min_free_(open_file(options.proc / "sys/vm/min_free_kbytes")),
      loadavg_(open_file(options.proc / "loadavg")),
      pid_max_(open_file(options.proc / "sys/kernel/pid_max")),
      threads_max_(open_file(options.proc / "sys/kernel/threads-max")),
      swap_(options.proc, options.sys) {}

std::string_view NodeSource::read_meminfo(Instant at) {
  const std::string_view text = text_of(meminfo_, meminfo_text_);
  meminfo_length_ = text.size();
  if (totals_ && at - totals_at_ < kTotalsHold) return text;
  totals_.reset();
  const auto total = meminfo_bytes(text, "MemTotal:");
  if (!total) return text;
  // "Hugetlb:" sums all page sizes since 4.19.
  totals_ = {*total, meminfo_bytes(text, "Hugetlb:").value_or(0)};
  refresh_reserve();
  totals_at_ = at;
  return text;
}

// /proc/zoneinfo lists every CPU of every zone: it is read when the watermarks or memory change.
void NodeSource::refresh_reserve() {
  Buffer buffer;
  const auto min_free = count_in(text_of(min_free_, buffer));
  if (min_free && min_free_kilobytes_ == min_free && reserve_of_ == totals_->total) return;
  min_free_kilobytes_ = min_free;
  reserve_of_ = totals_->total;
  std::ifstream zoneinfo(options_.proc / "zoneinfo");
  reserve_ = min_free ? reserved_pages(zoneinfo) : std::nullopt;
  if (reserve_) *reserve_ *= static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void NodeSource::use_top_level(std::span<const hr_record> records,
                               std::span<const std::uint32_t> positions) {
  kept_cache_ = 0;
  for (const std::uint32_t position : positions)
    kept_cache_ += kept_cache(records[position]);
}

std::optional<Bytes> NodeSource::memory_capacity() {
  read_meminfo(options_.clock());
  if (!totals_) return std::nullopt;
  return Bytes{clamped(totals_->total)};
}

// memory.available as the kubelet computes it of the root.
Observation NodeSource::available(const RootMemory& memory, Instant at) const {
  const std::uint64_t working_set =
      memory.usage > memory.inactive_file ? memory.usage - memory.inactive_file : 0;
  const std::uint64_t taken = options_.without_hugepages ? totals_->hugepages : 0;
  return {left(totals_->total, working_set + taken), clamped(totals_->total), at};
}

std::optional<NodeSource::RootMemory> NodeSource::root_memory(const hr_record& root) {
  if (!(root.valid & HR_MEMORY_STAT) || root.anon == HR_UNKNOWN || root.file == HR_UNKNOWN ||
      root.inactive_file == HR_UNKNOWN)
    return std::nullopt;
  return RootMemory{root.anon + root.file, root.inactive_file};
}

// The root has no memory.current: the kubelet's usage is anon + file of the root's memory.stat.
std::optional<NodeSource::RootMemory> NodeSource::read_root_memory() {
  std::optional<std::uint64_t> anon, file, inactive_file;
  Buffer buffer;
  for (FlatKeyed line(text_of(memory_stat_, buffer)); line.next();) {
    if (line.key() == "anon") anon = line.value();
    if (line.key() == "file") file = line.value();
    if (line.key() == "inactive_file") inactive_file = line.value();
    if (anon && file && inactive_file) break;
  }
  if (!anon || !file || !inactive_file) return std::nullopt;
  return RootMemory{*anon + *file, *inactive_file};
}

void NodeSource::read_memory(Observations& all) {
  read_memory(all, nullptr, {});
}

void NodeSource::read_memory(Observations& all, const hr_record* root, Instant sampled) {
  auto& observation = of(all, Signal::kMemoryAvailable);
  auto& kernel = of(all, Signal::kKernelMemAvailable);
  observation.reset();
  kernel.reset();
  unaccounted_.reset();
  const Instant at = options_.clock();
  const std::string_view meminfo = read_meminfo(at);
  if (!totals_) return;
  const auto free = meminfo_bytes(meminfo, "MemFree:");
  const auto allocatable =
      reserve_ ? allocatable_memory(meminfo, free, *reserve_, low_watermark(), kept_cache_)
               : meminfo_bytes(meminfo, "MemAvailable:");
  if (allocatable) kernel = {clamped(*allocatable), clamped(totals_->total), at};
  const auto of_record = root ? root_memory(*root) : std::nullopt;
  const auto memory = of_record ? of_record : read_root_memory();
  if (!memory) return;
  observation = available(*memory, of_record ? sampled : at);
  if (free) unaccounted_ = Bytes{left(totals_->total, *free + memory->usage + totals_->hugepages)};
}

// The limits are an operator's to change.
void NodeSource::refresh_max_pids(Instant at) {
  if (max_pids_ && at - max_pids_read_at_ < kTotalsHold) return;
  Buffer buffer;
  const auto pid_max = count_in(text_of(pid_max_, buffer));
  const auto threads_max = count_in(text_of(threads_max_, buffer));
  max_pids_.reset();
  if (!pid_max && !threads_max) return;
  max_pids_ = std::min(pid_max.value_or(~0ull), threads_max.value_or(~0ull));
  max_pids_read_at_ = at;
}

void NodeSource::read_pids(Observations& all) {
  auto& observation = of(all, Signal::kPidAvailable);
  observation.reset();
  const Instant at = options_.clock();
  Buffer buffer;
  const auto running = tasks_in(text_of(loadavg_, buffer));
  refresh_max_pids(at);
  if (!max_pids_ || !running) return;
  observation = {left(*max_pids_, *running), clamped(*max_pids_), at};
}

void NodeSource::read_swap(Observations& all, bool at_once) {
  swap_.read(options_.clock(), meminfo_text(), at_once, of(all, Signal::kSwapAvailable));
}

void NodeSource::read_filesystems(Observations& all) const {
  filesystem_read()(all);
}

std::function<void(Observations&)> NodeSource::filesystem_read() const {
  return [nodefs = options_.nodefs, imagefs = options_.imagefs, containerfs = options_.containerfs,
          clock = options_.clock](Observations& all) {
    const Instant at = clock();
    observe_filesystem(nodefs, at, Signal::kNodeFsAvailable, Signal::kNodeFsInodesFree, all);
    if (imagefs)
      observe_filesystem(*imagefs, at, Signal::kImageFsAvailable, Signal::kImageFsInodesFree, all);
    if (containerfs)
      observe_filesystem(*containerfs, at, Signal::kContainerFsAvailable,
                         Signal::kContainerFsInodesFree, all);
  };
}

void NodeSource::read_allocatable(const hr_record* pods, Instant sampled, Observations& all) const {
  auto& observation = of(all, Signal::kAllocatableMemoryAvailable);
  observation.reset();
  if (!pods || !(pods->valid & HR_MEMORY_LIMITS) || pods->memory_max == HR_NO_LIMIT) return;
  const auto working = working_set(*pods);
  if (!working) return;
  observation = {left(pods->memory_max, static_cast<std::uint64_t>(working->count)),
                 clamped(pods->memory_max), sampled};
}

Observations NodeSource::read_all(const hr_record* pods) {
  Observations all;
  read_memory(all);
  read_pids(all);
  read_swap(all);
  read_filesystems(all);
  read_allocatable(pods, options_.clock(), all);
  return all;
}

}  // namespace headroom::observe
