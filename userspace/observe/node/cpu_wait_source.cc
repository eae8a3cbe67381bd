// SPDX-License-Identifier: Apache-2.0
#include "observe/node/cpu_wait_source.h"

#include "observe/pod/pod_cgroup_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace headroom::observe {
namespace {

// Fields of a line "cpu0 user nice system idle iowait irq softirq steal guest guest_nice". Guest
// time is in user and nice.
enum Field : std::size_t { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal, kFields };

struct CpuLine {
  std::size_t cpu = 0;
  std::array<std::uint64_t, kFields> ticks{};
};

// Absent: no line of one CPU, such as the sum of all in the first line.
std::optional<CpuLine> parse_line(std::string_view line) {
  const char* at = line.data() + 3;
  const char* const end = line.data() + line.size();
  CpuLine parsed;
  auto [next, error] = std::from_chars(at, end, parsed.cpu);
  if (error != std::errc{} || parsed.cpu >= static_cast<std::size_t>(CpuSet::kMax))
    return std::nullopt;
  for (std::uint64_t& field : parsed.ticks) {
    while (next < end && *next == ' ')
      ++next;
    const auto got = std::from_chars(next, end, field);
    if (got.ec != std::errc{}) return std::nullopt;
    next = got.ptr;
  }
  return parsed;
}

bool is_cpu_line(std::string_view line) {
  return line.starts_with("cpu");
}

}  // namespace

CpuTimes parse_cpu_times(std::string_view proc_stat, std::int64_t ticks) {
  const std::uint64_t tick =
      1'000'000'000 / static_cast<std::uint64_t>(std::max(ticks, std::int64_t{1}));
  CpuTimes times;
  while (is_cpu_line(proc_stat)) {
    const std::size_t end = proc_stat.find('\n');
    if (end == std::string_view::npos) break;  // cut short
    if (const auto line = parse_line(proc_stat.substr(0, end))) {
      const auto& of = line->ticks;
      if (line->cpu >= times.size()) times.resize(line->cpu + 1);
      times[line->cpu] = CpuTime{.idle = (of[kIdle] + of[kIoWait]) * tick,
                                 .interrupts = (of[kIrq] + of[kSoftIrq] + of[kSteal]) * tick,
                                 .tasks = (of[kUser] + of[kNice] + of[kSystem]) * tick};
    }
    proc_stat.remove_prefix(end + 1);
  }
  return times;
}

void CpusetCache::begin_window(Instant at, const CgroupInventory& inventory) {
  at_ = at;
  first_reads_left_ = kFirstReads;
  later_reads_left_ = kLaterReads;
  std::erase_if(entries_,
                [&](const auto& entry) { return !inventory.find(CgroupId{entry.first}); });
}

const CpuSet* CpusetCache::find(CgroupId id, const CgroupInventory& inventory) {
  const auto known = entries_.find(id.value);
  const bool is_first = known == entries_.end();
  int& left = is_first ? first_reads_left_ : later_reads_left_;
  const bool due = is_first || at_ - known->second.read_at >= kHold;
  const KnownCgroup* cgroup = due && left > 0 ? inventory.find(id) : nullptr;
  if (!cgroup) return is_first || !known->second.cpus ? nullptr : &*known->second.cpus;
  --left;
  Entry& entry = entries_[id.value];
  entry = {.cpus = cpus_of_cgroup(cgroup_root_, cgroup->path), .read_at = at_};
  return entry.cpus ? &*entry.cpus : nullptr;
}

CpuTimeReader::CpuTimeReader(const std::filesystem::path& proc)
    : stat_(::open((proc / "stat").c_str(), O_RDONLY | O_CLOEXEC)) {}

CpuWaitSource::CpuWaitSource(const std::filesystem::path& proc, std::filesystem::path cgroup_root)
    : times_(proc), cpusets_(std::move(cgroup_root)) {}

CpuTimes CpuTimeReader::read() {
  text_.clear();
  std::array<char, 16384> buffer;
  // The lines of CPUs come first; the interrupts' line can be as long again.
  while (stat_ && text_.find("\nintr") == std::string::npos) {
    const ssize_t got =
        ::pread(stat_.get(), buffer.data(), buffer.size(), static_cast<off_t>(text_.size()));
    if (got <= 0) break;
    text_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return parse_cpu_times(text_, ::sysconf(_SC_CLK_TCK));
}

void CpuWaitSource::update(SnapshotScope scope, Instant at, const CgroupInventory& inventory,
                           Snapshot& snapshot, std::optional<Observation>& pressure) {
  const bool window_ends = accounts_.is_due(at);
  if (window_ends) {
    cpusets_.begin_window(at, inventory);
    const CpuTimes times = times_.read();
    accounts_.update({.at = at,
                      .records = *snapshot.cgroups,
                      .pods = snapshot.pods,
                      .cpus = times,
                      .throttles = snapshot.waits.throttles,
                      .changes = snapshot.changes},
                     [&](CgroupId id) { return cpusets_.find(id, inventory); });
    memory_pairs_.update(at, *snapshot.cgroups, snapshot.pods, snapshot.waits.stalls);
    pressure.reset();
    constexpr std::int64_t kWhole = 1'000'000;
    if (const auto contention = accounts_.contention())
      pressure = Observation{.available = kWhole - static_cast<std::int64_t>(*contention * kWhole),
                             .capacity = kWhole,
                             .at = at};
  }
  // The turn in which a window ends may take another snapshot, and decides by that one.
  if (pressure && (window_ends || scope == SnapshotScope::kDecision))
    snapshot.waits.cpu_use = accounts_.uses();
  snapshot.waits.cpu = accounts_.totals();
  snapshot.waits.cpu_pairs = accounts_.pairs();
  snapshot.waits.memory_pairs = memory_pairs_.longest();
}

}  // namespace headroom::observe
