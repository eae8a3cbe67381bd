// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/slice_reader.h"

#include "base/cgroup_directory.h"
#include "base/file_io.h"
#include "observe/cgroup/stat_text.h"

#include <headroom/bpf/abi.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace headroom::observe {
namespace {

constexpr std::array<std::string_view, 5> kNeeded{"cpu", "cpuset", "io", "memory", "pids"};

// One cgroup's files; what is not there or does not parse is not known.
class Directory {
 public:
  explicit Directory(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}
  // Absent: there is no such directory.
  std::optional<CgroupId> id() const { return fd_ ? cgroup_id_of(fd_.get()) : std::nullopt; }

  // Good until the next call.
  std::string_view text(const std::string& file) {
    const Fd open(::openat(fd_.get(), file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!open) return {};
    const ssize_t size = ::read(open.get(), buffer_.data(), buffer_.size());
    return size > 0 ? std::string_view(buffer_.data(), static_cast<std::size_t>(size))
                    : std::string_view();
  }

  template <class T>
  std::optional<Limit<T>> limit(const std::string& file) {
    const auto read = limit_in(text(file));
    if (!read) return std::nullopt;
    if (*read == HR_NO_LIMIT) return Limit<T>::max();
    return Limit<T>(T{static_cast<std::int64_t>(*read)});
  }
  template <class T>
  std::optional<T> count(const std::string& file) {
    const auto read = count_in(text(file));
    if (!read) return std::nullopt;
    return T{static_cast<std::int64_t>(*read)};
  }

 private:
  Fd fd_;
  std::array<char, 4096> buffer_{};
};

// While cpu.idle is set it reads 0 (1 since Linux 6.12) and cannot be written: it is not compared.
std::optional<CpuWeight> cpu_weight(Directory& directory, CpuWeight wanted) {
  const auto read = count_in(directory.text("cpu.weight"));
  if (!read) return std::nullopt;
  const CpuWeight weight{static_cast<std::uint32_t>(*read)};
  if (weight == wanted || count_in(directory.text("cpu.idle")) != 1) return weight;
  return wanted;
}

std::optional<CpuMax> cpu_max(Directory& directory) {
  const auto read = quota_in(directory.text("cpu.max"));
  if (!read) return std::nullopt;
  CpuMax max{.period = Microseconds(read->period)};
  if (read->quota != HR_NO_LIMIT) max.quota = Microseconds(read->quota);
  return max;
}

std::optional<Duration> cpu_used(Directory& directory) {
  FlatKeyed keyed(directory.text("cpu.stat"));
  while (keyed.next())
    if (keyed.key() == "usage_usec") return Microseconds(keyed.value());
  return std::nullopt;
}

CgroupValues values_of(Directory& directory, const CgroupValues& wanted) {
  CgroupValues read;
  if (wanted.cpu_weight) read.cpu_weight = cpu_weight(directory, *wanted.cpu_weight);
  if (wanted.cpu_max) read.cpu_max = cpu_max(directory);
  if (wanted.memory_min) read.memory_min = directory.limit<Bytes>("memory.min");
  if (wanted.memory_low) read.memory_low = directory.limit<Bytes>("memory.low");
  if (wanted.memory_high) read.memory_high = directory.limit<Bytes>("memory.high");
  if (wanted.memory_max) read.memory_max = directory.limit<Bytes>("memory.max");
  if (wanted.memory_swap_max) read.memory_swap_max = directory.limit<Bytes>("memory.swap.max");
  if (wanted.pids_max) read.pids_max = directory.limit<Tasks>("pids.max");
  if (wanted.memory_oom_group)
    if (const auto flag = count_in(directory.text("memory.oom.group")))
      read.memory_oom_group = *flag != 0;
  for (const auto& [size, limit] : wanted.hugetlb_max) {
    CgroupValues one;
    one.hugetlb_max.emplace(size, limit);
    if (const auto found = directory.limit<Bytes>(cgroup_settings(one).front().file))
      read.hugetlb_max.emplace(size, *found);
  }
  return read;
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(std::move(word));
  return words;
}

bool is_among(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

SliceReader::SliceReader(std::filesystem::path root, const std::vector<std::string>& controllers)
    : root_(std::move(root)), has_huge_pages_(is_among(controllers, "hugetlb")) {
  for (const std::string_view controller : kNeeded)
    if (is_among(controllers, controller)) needed_.emplace_back(controller);
}

SliceReading SliceReader::read(const std::string& path, const CgroupValues& wanted) const {
  SliceReading reading;
  reading.page = Bytes{::sysconf(_SC_PAGESIZE)};
  Directory directory(root_ / path.substr(1));
  const auto cgroup = directory.id();
  if (!cgroup) return reading;
  reading.cgroup = *cgroup;
  const std::vector<std::string> has = words_of(directory.text("cgroup.controllers"));
  for (const std::string& controller : needed_)
    if (!is_among(has, controller)) reading.missing_controllers.push_back(controller);
  reading.values = values_of(directory, wanted);
  reading.memory = directory.count<Bytes>("memory.current");
  reading.tasks = directory.count<Tasks>("pids.current");
  reading.cpu = cpu_used(directory);
  return reading;
}

}  // namespace headroom::observe
