// SPDX-License-Identifier: Apache-2.0
#include "observe/node/capacity.h"

#include "base/clock.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return number;
}

// "MemTotal:  2014124 kB", on a node's own file behind "Node 0".
Result<Bytes> total_in(const fs::path& meminfo) {
  constexpr std::string_view kLabel = "MemTotal:";
  std::ifstream file(meminfo);
  for (std::string line; std::getline(file, line);)
    if (const std::size_t at = line.find(kLabel); at != std::string::npos)
      if (const auto kilobytes = number_at(std::string_view(line).substr(at + kLabel.size())))
        return Bytes{*kilobytes * 1024};
  return failure("read MemTotal of " + meminfo.string());
}

// The format of Kubernetes' names of huge pages: "hugepages-2Mi", "hugepages-64Ki".
std::string resource_of_pages(Bytes size) {
  return "hugepages-" + Quantity::of(size.count, Quantity::Format::kBinarySI).canonical();
}

// From folders such as hugepages-2048kB.
void add_huge_pages(const fs::path& hugepages, NumaMemorySize& size) {
  constexpr std::string_view kPrefix = "hugepages-";
  std::error_code error;
  for (fs::directory_iterator at(hugepages, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto kilobytes = number_at(std::string_view(name).substr(kPrefix.size()));
    std::string line;
    std::getline(std::ifstream(at->path() / "nr_hugepages"), line);
    const auto pages = number_at(line);
    if (!kilobytes || !pages) continue;
    const Bytes page{*kilobytes * 1024};
    size.huge_pages[resource_of_pages(page)] = Bytes{page.count * *pages};
  }
}

}  // namespace

Result<MemorySizes> read_numa_memory(const fs::path& sys, const fs::path& proc) {
  constexpr std::string_view kPrefix = "node";
  MemorySizes sizes;
  std::error_code error;
  for (fs::directory_iterator at(sys / "devices/system/node", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix) || !at->is_directory()) continue;
    const auto id = number_at(std::string_view(name).substr(kPrefix.size()));
    if (!id || *id >= NodeSet::kMax) continue;
    const auto total = total_in(at->path() / "meminfo");
    if (!total) return tl::make_unexpected(total.error());
    NumaMemorySize& size = sizes[static_cast<int>(*id)];
    size.memory = *total;
    add_huge_pages(at->path() / "hugepages", size);
  }
  if (!sizes.empty()) return sizes;
  const auto total = total_in(proc / "meminfo");
  if (!total) return tl::make_unexpected(total.error());
  sizes[0].memory = *total;
  add_huge_pages(sys / "kernel/mm/hugepages", sizes[0]);
  return sizes;
}

namespace {

constexpr std::size_t kSample = std::size_t{32} << 20;
constexpr std::int64_t kMaxThreads = 8;
// A machine too busy to be measured, or a mapping refused, still gets a watch that is quick enough
// for any memory bus of one socket.
constexpr std::int64_t kFloor = std::int64_t{4} << 30;
// Twelve channels of eight bytes at 6,400 million transfers a second.
constexpr std::int64_t kSocketChannels = std::int64_t{12} * 8 * 6'400'000'000;

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Bytes per second of this thread's CPU time: a busy machine lets it wait, and that does not count.
double touch(char* memory, std::size_t size) {
  const Duration began = thread_cpu_time();
  for (std::size_t at = 0; at < size; at += 4096)
    static_cast<volatile char*>(memory)[at] = 1;
  const std::chrono::duration<double> took = thread_cpu_time() - began;
  return static_cast<double>(size) / std::max(took.count(), 1e-6);
}

// Of so many threads together.
double measure_touch(std::int64_t threads) {
  const std::size_t each = kSample / static_cast<std::size_t>(threads);
  void* memory =
      ::mmap(nullptr, kSample, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  ::madvise(memory, kSample, MADV_NOHUGEPAGE);
  std::vector<double> rates(static_cast<std::size_t>(threads));
  {
    std::barrier start(threads);
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < rates.size(); ++i)
      all.emplace_back([&, i] {
        start.arrive_and_wait();
        rates[i] = touch(static_cast<char*>(memory) + i * each, each);
      });
  }
  ::munmap(memory, kSample);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

std::int64_t fill_rate(double measured, std::int64_t threads, std::int64_t cpus,
                       std::int64_t sockets) {
  const double all = measured * static_cast<double>(cpus) / static_cast<double>(threads);
  const std::int64_t most = kSocketChannels * sockets;
  if (!(all < static_cast<double>(most))) return most;
  return std::max(kFloor, static_cast<std::int64_t>(all));
}

std::int64_t online_sockets(const std::filesystem::path& sys) {
  const auto cpus = CpuSet::parse(first_line(sys / "devices/system/cpu/online"));
  std::set<std::string> sockets;
  if (cpus)
    for (const Cpu cpu : *cpus)
      sockets.insert(first_line(sys / ("devices/system/cpu/cpu" + std::to_string(cpu)) /
                                "topology/physical_package_id"));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(sockets.size()));
}

FillMeasurement measure_fill(const std::filesystem::path& sys) {
  const std::int64_t threads =
      std::clamp<std::int64_t>(online_cpus(sys).value_or(1), 1, kMaxThreads);
  return {.bytes_per_second = measure_touch(threads), .threads = threads};
}

std::int64_t fastest_fill(const FillMeasurement& measured, const std::filesystem::path& sys) {
  return fill_rate(measured.bytes_per_second, measured.threads, online_cpus(sys).value_or(1),
                   online_sockets(sys));
}

namespace {

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// "hugepages-2048kB"
std::optional<Bytes> page_size(std::string_view directory) {
  constexpr std::string_view kPrefix = "hugepages-", kSuffix = "kB";
  if (!directory.starts_with(kPrefix) || !directory.ends_with(kSuffix)) return std::nullopt;
  directory.remove_prefix(kPrefix.size());
  directory.remove_suffix(kSuffix.size());
  const auto kilobytes = whole(directory);
  std::int64_t bytes = 0;
  if (!kilobytes || __builtin_mul_overflow(*kilobytes, 1024, &bytes)) return std::nullopt;
  return Bytes{bytes};
}

}  // namespace

std::optional<std::int64_t> online_cpus(const std::filesystem::path& sys) {
  const auto cpus = CpuSet::parse(first_line(sys / "devices/system/cpu/online"));
  if (!cpus || cpus->size() == 0) return std::nullopt;
  return cpus->size();
}

CpuSet possible_cpus(const std::filesystem::path& sys) {
  return CpuSet::parse(first_line(sys / "devices/system/cpu/possible")).value_or(CpuSet());
}

std::uint32_t possible_nodes(const std::filesystem::path& sys) {
  const auto nodes = CpuSet::parse(first_line(sys / "devices/system/node/possible"));
  Cpu highest = 0;
  if (nodes)
    for (const Cpu node : *nodes)
      highest = node;
  return static_cast<std::uint32_t>(highest) + 1;
}

std::uint64_t memory_nodes(const std::filesystem::path& sys) {
  const auto nodes = CpuSet::parse(first_line(sys / "devices/system/node/has_memory"));
  std::uint64_t bits = 0;
  if (nodes)
    for (const Cpu node : *nodes)
      if (node < 64) bits |= std::uint64_t{1} << node;
  return bits;
}

std::map<Bytes, Bytes> huge_page_pools(const std::filesystem::path& sys) {
  std::map<Bytes, Bytes> pools;
  std::error_code error;
  std::filesystem::directory_iterator at(sys / "kernel/mm/hugepages", error), end;
  for (; !error && at != end; at.increment(error)) {
    const auto size = page_size(at->path().filename().native());
    const auto pages = whole(first_line(at->path() / "nr_hugepages"));
    std::int64_t bytes = 0;
    if (size && pages && !__builtin_mul_overflow(*pages, size->count, &bytes))
      pools[*size] = Bytes{bytes};
  }
  return pools;
}

}  // namespace headroom::observe
