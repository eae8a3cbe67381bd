// SPDX-License-Identifier: Apache-2.0
#include "observe/node/swap_source.h"

#include "observe/cgroup/stat_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace headroom::observe {
namespace {

constexpr Duration kHold = std::chrono::milliseconds(50);
constexpr Duration kNearHold = std::chrono::milliseconds(5);
// Where there is no swap: it can be added.
constexpr Duration kNoSwapHold = std::chrono::seconds(1);
// /proc/vmstat sums counters of every CPU; these are taken over seconds.
constexpr Duration kCountersHold = std::chrono::milliseconds(250);
constexpr Duration kZswapHold = std::chrono::seconds(10);
// The fastest that memory fills, in bytes per second (Policy::fastest_fill).
constexpr std::int64_t kFastestFill = std::int64_t{8} << 30;

using Buffer = std::array<char, 16384>;

std::string_view text_of(const Fd& file, Buffer& buffer) {
  if (!file) return {};
  const ssize_t got = pread(file.get(), buffer.data(), buffer.size(), 0);
  return got > 0 ? std::string_view(buffer.data(), static_cast<std::size_t>(got))
                 : std::string_view();
}

// /proc/vmstat comes a page at a time.
std::string_view long_text_of(const Fd& file, Buffer& buffer) {
  std::size_t size = 0;
  while (file && size < buffer.size()) {
    const ssize_t got =
        pread(file.get(), buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return {buffer.data(), size};
}

void open_once(Fd& file, const std::filesystem::path& path) {
  if (!file) file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The words of a text, between blanks.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  std::string_view next() {
    const std::size_t begin = rest_.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    rest_.remove_prefix(begin);
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::optional<std::int64_t> number() {
    const auto count = count_in(next());
    if (!count || *count > INT64_MAX / 65536) return std::nullopt;
    return static_cast<std::int64_t>(*count);
  }

 private:
  std::string_view rest_;
};

template <class Line>
void each_line(std::string_view text, Line&& line) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

SwapSource::SwapSource(std::filesystem::path proc, std::filesystem::path sys)
    : proc_(std::move(proc)), sys_(std::move(sys)) {}

void SwapSource::read(Instant at, std::string_view meminfo, bool at_once,
                      std::optional<Observation>& free) {
  if (!at_once && read_at_ && at - *read_at_ < hold_) return;
  read_at_ = at;
  free.reset();
  SwapReading reading;
  reading.at = at;
  const auto totals = take_meminfo(meminfo, reading);
  if (!totals) {
    hold_ = kNoSwapHold;
    reading_.reset();
    return;
  }
  if (totals->total > 0) free = Observation{totals->free, totals->total, at};
  const Duration until_gone{
      static_cast<Duration::rep>(1e9 * static_cast<double>(reading.mem_available) / kFastestFill)};
  hold_ = std::clamp<Duration>(until_gone, kNearHold, kHold);
  reading.disk = {totals->total, totals->free};
  if (totals->total > 0) {
    read_devices(reading);
    read_zswap(at, memory_total_, reading);
  }
  if (reading_) {
    reading.counted_at = reading_->counted_at;
    reading.refaults = reading_->refaults;
    reading.reclaimed = reading_->reclaimed;
    reading.stalled_micros = reading_->stalled_micros;
  }
  if (at - reading.counted_at >= kCountersHold) read_counters(reading);
  if (totals->memory_known)
    reading_ = reading;
  else
    reading_.reset();
}

std::optional<SwapSource::Totals> SwapSource::take_meminfo(std::string_view text,
                                                           SwapReading& reading) {
  const auto bytes = [&](std::string_view key) -> std::optional<std::int64_t> {
    const auto count = meminfo_bytes(text, key);
    return count && *count <= INT64_MAX ? std::optional(static_cast<std::int64_t>(*count))
                                        : std::nullopt;
  };
  const auto total = bytes("SwapTotal:");
  if (!total || (*total == 0 && !without_swap_))
    return std::nullopt;  // most nodes: the rest is not looked for
  const auto free = bytes("SwapFree:");
  if (!free) return std::nullopt;
  const auto memory = bytes("MemTotal:"), available = bytes("MemAvailable:");
  memory_total_ = memory.value_or(0);
  reading.mem_available = available.value_or(0);
  reading.cache_in_use = bytes("Active(file):").value_or(0);
  reading.resident = bytes("AnonPages:").value_or(0) + bytes("Shmem:").value_or(0);
  if (*total == 0) reading.cache_in_use += bytes("Inactive(file):").value_or(0);
  reading.cold = bytes("Inactive(anon):").value_or(0);
  reading.zswap.memory = bytes("Zswap:").value_or(0);
  reading.zswap.stored = bytes("Zswapped:").value_or(0);
  return Totals{.total = *total, .free = *free, .memory_known = memory && available};
}

// The space of zram devices is moved from the disks to zram.
void SwapSource::read_devices(SwapReading& reading) {
  open_once(swaps_, proc_ / "swaps");
  for (Zram& each : zrams_)
    each.seen = false;
  Buffer buffer;
  each_line(text_of(swaps_, buffer), [&](std::string_view line) {
    Words words(line);
    const std::string_view device = words.next();
    constexpr std::string_view kZram = "/dev/zram";
    if (!device.starts_with(kZram)) return;
    words.next();  // partition
    const auto size = words.number(), used = words.number();
    if (!size || !used) return;
    const SwapReading::Space space{.total = *size * 1024,
                                   .free = std::max<std::int64_t>(*size - *used, 0) * 1024};
    reading.zram.total += space.total;
    reading.zram.free += space.free;
    if (const auto number = count_in(device.substr(kZram.size())))
      reading.zram_pool.memory_left += read_zram(*number, space.free, reading);
  });
  for (Zram& each : zrams_)
    if (!each.seen) each.mm_stat = Fd();
  reading.disk.total = std::max<std::int64_t>(reading.disk.total - reading.zram.total, 0);
  reading.disk.free =
      std::clamp<std::int64_t>(reading.disk.free - reading.zram.free, 0, reading.disk.total);
}

// mm_stat: orig_data_size compr_data_size mem_used_total mem_limit mem_used_max same_pages
// pages_compacted huge_pages; the last since 4.18.
std::int64_t SwapSource::read_zram(std::uint64_t number, std::int64_t free, SwapReading& reading) {
  Zram* const slot = zram_slot(number);
  if (!slot) return free;
  slot->seen = true;
  if (!slot->mm_stat)
    open_once(slot->mm_stat, sys_ / "block" / ("zram" + std::to_string(number)) / "mm_stat");
  Buffer buffer;
  const std::string_view text = text_of(slot->mm_stat, buffer);
  Words words(text.substr(0, text.find('\n')));
  const auto stored = words.number();
  words.next();
  const auto memory = words.number(), limit = words.number();
  if (!stored || !memory || !limit) {
    slot->mm_stat = Fd();  // removed and made again: opened again next time
    return free;
  }
  for (int skipped = 0; skipped < 3; ++skipped)
    words.next();
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  reading.incompressible += words.number().value_or(0) * page;
  reading.zram_pool.stored += *stored;
  reading.zram_pool.memory += *memory;
  return *limit > 0 ? std::max<std::int64_t>(*limit - *memory, 0) : free;
}

SwapSource::Zram* SwapSource::zram_slot(std::uint64_t number) {
  for (Zram& each : zrams_)
    if (each.mm_stat && each.number == number) return &each;
  for (Zram& each : zrams_)
    if (!each.mm_stat && !each.seen) {
      each.number = number;
      return &each;
    }
  return nullptr;
}

void SwapSource::read_zswap(Instant at, std::int64_t total, SwapReading& reading) {
  if (!zswap_read_ || at - *zswap_read_ >= kZswapHold) {
    zswap_read_ = at;
    const std::filesystem::path parameters = sys_ / "module/zswap/parameters";
    Fd enabled, percent;
    open_once(enabled, parameters / "enabled");
    open_once(percent, parameters / "max_pool_percent");
    Buffer buffer;
    const bool on = text_of(enabled, buffer).starts_with('Y');
    const auto most = count_in(text_of(percent, buffer));
    zswap_limit_ = on && most && *most <= 100 ? total / 100 * static_cast<std::int64_t>(*most) : 0;
  }
  reading.zswap.memory_left = std::max<std::int64_t>(zswap_limit_ - reading.zswap.memory, 0);
}

// pgsteal_kswapd and pgsteal_direct of /proc/vmstat leave out the reclaim of a cgroup at its limit.
void SwapSource::read_counters(SwapReading& reading) {
  open_once(vmstat_, proc_ / "vmstat");
  open_once(pressure_, proc_ / "pressure/memory");
  Buffer buffer;
  std::uint64_t refaults = 0, reclaimed = 0;
  bool any = false;
  for (FlatKeyed line(long_text_of(vmstat_, buffer)); line.next();) {
    if (line.key() == "workingset_refault_anon" || line.key() == "workingset_refault_file")
      refaults += line.value();
    if (line.key() != "pgsteal_kswapd" && line.key() != "pgsteal_direct") continue;
    reclaimed += line.value();
    any = true;
  }
  reading.refaults = any ? std::optional(refaults) : std::nullopt;
  reading.reclaimed = any ? std::optional(reclaimed) : std::nullopt;
  reading.stalled_micros = pressure_total(text_of(pressure_, buffer), "full");
  reading.counted_at = reading.at;
}

}  // namespace headroom::observe
