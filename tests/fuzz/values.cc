// SPDX-License-Identifier: Apache-2.0
// The small grammars: quantities, durations, cpusets, cgroup and unit names, taints.
#include "act/cpus/cpu_checkpoint.h"
#include "fuzz.h"
#include "judge/admission/taints.h"
#include "judge/allocatable/cgroup/cgroup_name.h"
#include "judge/resources/go_duration.h"

#include <headroom/cpuset.h>
#include <headroom/quantity.h>

#include <string>

namespace headroom::fuzz {
namespace {

void quantity(std::string_view text) {
  const auto parsed = Quantity::parse(text);
  if (!parsed) return;
  const auto again = Quantity::parse(parsed->canonical());
  promise(again.has_value(), "the canonical form of a quantity is a quantity");
  promise(*again == *parsed, "and the same one");
}

void duration(std::string_view text) {
  const auto parsed = parse_go_duration(text);
  if (!parsed) return;
  const auto again = parse_go_duration(format_go_duration(*parsed));
  promise(again && *again == *parsed, "a duration that is written is read as the same");
}

void cpus(std::string_view text) {
  const auto parsed = CpuSet::parse(text);
  if (!parsed) return;
  const auto again = CpuSet::parse(parsed->format());
  promise(again && *again == *parsed, "a cpuset that is written is read as the same");
}

void names(std::string_view text) {
  for (const CgroupDriver driver : {CgroupDriver::kCgroupfs, CgroupDriver::kSystemd}) {
    const auto parsed = CgroupName::parse(driver, text);
    if (!parsed) continue;
    const auto again = CgroupName::parse(driver, parsed->path(driver));
    promise(again && *again == *parsed, "a cgroup's path leads back to its name");
  }
}

}  // namespace
}  // namespace headroom::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text = fuzz::text_of(bytes, size);
  fuzz::quantity(text);
  fuzz::duration(text);
  fuzz::cpus(text);
  fuzz::names(text);
  (void)parse_taint_edit(text);
  return 0;
}
