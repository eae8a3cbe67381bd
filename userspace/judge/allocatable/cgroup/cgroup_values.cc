// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/cgroup_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string_view>

namespace headroom {
namespace {

constexpr std::string_view kPrefix = "hugepages-";

}  // namespace

std::optional<Bytes> huge_page_size(std::string_view resource) {
  if (!resource.starts_with(kPrefix)) return std::nullopt;
  const auto size = Quantity::parse(resource.substr(kPrefix.size()));
  if (!size || size->sign() <= 0) return std::nullopt;
  return Bytes{size->value()};
}

std::string huge_page_resource(Bytes page_size) {
  return std::string(kPrefix) +
         Quantity::of(page_size.count, Quantity::Format::kBinarySI).canonical();
}

std::map<Bytes, Bytes> huge_pages_in(const ResourceList& list) {
  std::map<Bytes, Bytes> pages;
  for (const auto& [resource, amount] : list)
    if (const auto size = huge_page_size(resource)) pages[*size] += Bytes{amount.value()};
  return pages;
}

namespace {

// Numbers from here on mean "max": runc and the kubelet write 1<<62.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

// The value that the kernel keeps for a limit: whole units (page_counter_memparse() divides by the
// page size, hugetlb_cgroup_write() rounds down to the huge page's).
std::optional<std::int64_t> rounded_limit(const Limit<Bytes>& limit, Bytes unit) {
  if (limit.is_max() || limit.most()->count >= kUnlimited) return std::nullopt;
  return unit.count > 0 ? limit.most()->count / unit.count : limit.most()->count;
}

bool same(const Limit<Bytes>& a, const Limit<Bytes>& b, Bytes unit) {
  return rounded_limit(a, unit) == rounded_limit(b, unit);
}
bool same(const CpuMax& a, const CpuMax& b, Bytes) {
  return a == b || (a.quota.is_max() && b.quota.is_max());
}
template <class T>
bool same(const T& a, const T& b, Bytes) {
  return a == b;
}

class ValueComparison {
 public:
  ValueComparison(const CgroupValues& desired, const CgroupValues& actual, Bytes page)
      : desired_(desired), actual_(actual), page_(page) {}

  template <class T>
  void compare(std::optional<T> CgroupValues::*field) {
    const std::optional<T>& wanted = desired_.*field;
    const std::optional<T>& found = actual_.*field;
    if (!wanted) return;
    if (!found)
      result_.unread.*field = wanted;
    else if (!same(*wanted, *found, page_))
      result_.write.*field = wanted;
  }

  void compare_hugetlb() {
    for (const auto& [size, wanted] : desired_.hugetlb_max) {
      const auto found = actual_.hugetlb_max.find(size);
      if (found == actual_.hugetlb_max.end())
        result_.unread.hugetlb_max.emplace(size, wanted);
      else if (!same(wanted, found->second, size))
        result_.write.hugetlb_max.emplace(size, wanted);
    }
  }

  Difference take() { return std::move(result_); }

 private:
  const CgroupValues& desired_;
  const CgroupValues& actual_;
  Bytes page_;
  Difference result_;
};

std::string format_value(CpuWeight weight) {
  return std::to_string(weight.value);
}
std::string format_value(bool flag) {
  return flag ? "1" : "0";
}
template <class T>
std::string format_value(const Limit<T>& limit) {
  return limit.is_max() ? "max" : std::to_string(limit.most()->count);
}
template <>
std::string format_value(const Limit<Microseconds>& limit) {
  return limit.is_max() ? "max" : std::to_string(limit.most()->count());
}
std::string format_value(const CpuMax& cpu) {
  return format_value(cpu.quota) + " " + std::to_string(cpu.period.count());
}

// "hugetlb.2MB.max", as the kernel names it (mm/hugetlb_cgroup.c, mem_fmt()).
std::string hugetlb_file(Bytes size) {
  constexpr std::int64_t kKiB = 1 << 10;
  constexpr std::int64_t kMiB = 1 << 20;
  constexpr std::int64_t kGiB = 1 << 30;
  std::string name = "hugetlb.";
  if (size.count >= kGiB)
    name += std::to_string(size.count / kGiB) + "GB";
  else if (size.count >= kMiB)
    name += std::to_string(size.count / kMiB) + "MB";
  else
    name += std::to_string(size.count / kKiB) + "KB";
  return name + ".max";
}

}  // namespace

Difference diff(const CgroupValues& desired, const CgroupValues& actual, Bytes page) {
  ValueComparison comparison(desired, actual, page);
  comparison.compare(&CgroupValues::cpu_weight);
  comparison.compare(&CgroupValues::cpu_max);
  comparison.compare(&CgroupValues::memory_min);
  comparison.compare(&CgroupValues::memory_low);
  comparison.compare(&CgroupValues::memory_high);
  comparison.compare(&CgroupValues::memory_max);
  comparison.compare(&CgroupValues::memory_swap_max);
  comparison.compare(&CgroupValues::memory_oom_group);
  comparison.compare(&CgroupValues::pids_max);
  comparison.compare_hugetlb();
  return comparison.take();
}

std::vector<CgroupSetting> cgroup_settings(const CgroupValues& values) {
  std::vector<CgroupSetting> all;
  const auto add = [&](const char* file, const auto& field) {
    if (field) all.push_back({file, format_value(*field)});
  };
  add("cpu.weight", values.cpu_weight);
  add("cpu.max", values.cpu_max);
  add("memory.min", values.memory_min);
  add("memory.low", values.memory_low);
  add("memory.high", values.memory_high);
  add("memory.max", values.memory_max);
  add("memory.swap.max", values.memory_swap_max);
  add("memory.oom.group", values.memory_oom_group);
  add("pids.max", values.pids_max);
  for (const auto& [size, limit] : values.hugetlb_max)
    all.push_back({hugetlb_file(size), format_value(limit)});
  return all;
}

namespace {

constexpr std::int64_t kMilliPerCpu = 1000;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::uint32_t kMinWeight = 1;
constexpr std::uint32_t kMaxWeight = 10'000;
constexpr Microseconds kMinQuota(1000);  // the kernel refuses less

std::uint32_t linear(std::uint64_t shares) {
  return static_cast<std::uint32_t>(1 + (shares - 2) * 9999 / 262'142);
}

// Through three points, with L = log2(shares): 2 → 1, 1024 → 100, 262144 → 10000 (runc 4772,
// opencontainers/cgroups 20).
std::uint32_t quadratic(std::uint64_t shares) {
  const double l = std::log2(static_cast<double>(shares));
  const double exponent = (l * l + 125 * l) / 612.0 - 7.0 / 34.0;
  return static_cast<std::uint32_t>(std::ceil(std::pow(10, exponent)));
}

}  // namespace

CpuShares shares_of(MilliCpu cpu) {
  constexpr std::int64_t kMax = 256 * kMilliPerCpu;  // this many give kMaxShares
  const std::int64_t milli = std::clamp<std::int64_t>(cpu.count, 0, kMax);
  const auto shares = static_cast<std::uint64_t>(milli * kSharesPerCpu / kMilliPerCpu);
  return {std::clamp(shares, kMinShares.count, kMaxShares.count)};
}

std::optional<Microseconds> directory_quota(MilliCpu cpu, Microseconds period) {
  assert(period.count() > 0);
  if (cpu.count <= 0) return std::nullopt;
  std::int64_t product = 0;
  if (__builtin_mul_overflow(cpu.count, std::int64_t{period.count()}, &product))
    product = std::numeric_limits<std::int64_t>::max();
  return std::max(Microseconds(product / kMilliPerCpu), kMinQuota);
}

CpuWeight weight_of(CpuShares shares, WeightFormula formula) {
  if (shares <= kMinShares) return {kMinWeight};
  if (shares >= kMaxShares) return {kMaxWeight};
  switch (formula) {
    case WeightFormula::kLinear:
      return {linear(shares.count)};
    case WeightFormula::kQuadratic:
      return {quadratic(shares.count)};
  }
  return {kMinWeight};
}

}  // namespace headroom
