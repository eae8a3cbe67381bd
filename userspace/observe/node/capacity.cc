// SPDX-License-Identifier: Apache-2.0
#include "observe/node/capacity.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace headroom::observe {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

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
