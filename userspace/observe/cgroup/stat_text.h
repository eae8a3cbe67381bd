// SPDX-License-Identifier: Apache-2.0
// The text of cgroupfs files, read without allocating. What does not parse is nullopt or skipped:
// a number we cannot read is unknown, never zero.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::observe {

// "123" or "123\n", nothing else; no sign, no overflow past 64 bits.
std::optional<std::uint64_t> count_in(std::string_view text);

// A limit file: a count, or "max" as HR_NO_LIMIT.
std::optional<std::uint64_t> limit_in(std::string_view text);

// Walks "key value\n" lines. A line of another shape is skipped, and so is an unfinished last
// line: a buffer that ended early must not turn 12345 into 123.
class FlatKeyed {
 public:
  explicit FlatKeyed(std::string_view text) : rest_(text) {}
  bool next();
  std::string_view key() const { return key_; }
  std::uint64_t value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view key_;
  std::uint64_t value_ = 0;
};

// Of /proc/meminfo: "MemTotal:       16384 kB" in bytes. `key` has its colon.
std::optional<std::uint64_t> meminfo_bytes(std::string_view text, std::string_view key);

// The total of a pressure file's "some" or "full" line, in microseconds.
std::optional<std::uint64_t> pressure_total(std::string_view text, std::string_view kind);

// cpu.max: "max 100000\n" or "50000 100000\n", in microseconds.
struct CpuQuota {
  std::uint64_t quota = 0;  // HR_NO_LIMIT: max
  std::uint64_t period = 0;
};
std::optional<CpuQuota> quota_in(std::string_view text);

// Major numbers of block devices. What passes through a device that is made of others (device
// mapper, md) is counted for it and for the devices below it (blk_cgroup_bio_start(),
// block/blk-cgroup.c, counts each bio where it is submitted).
struct BlockMajors {
  std::bitset<512> known;    // BLKDEV_MAJOR_MAX, block/genhd.c
  std::bitset<512> stacked;  // of them: made of others
};
// Of /proc/devices.
BlockMajors block_majors_in(std::string_view proc_devices);

// io.stat, summed over its devices without the stacked ones; a device's line without a key adds
// nothing to it.
struct IoTotals {
  std::uint64_t rbytes = 0, wbytes = 0, rios = 0, wios = 0;
  std::optional<std::size_t> unknown_major;  // of a device that was counted
};
IoTotals io_totals(std::string_view text, const BlockMajors& majors = {});

}  // namespace headroom::observe
