// SPDX-License-Identifier: Apache-2.0
#include "observe/node/numa_memory.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

}  // namespace headroom::observe
