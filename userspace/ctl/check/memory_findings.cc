// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/memory_findings.h"

#include "base/human_readable.h"

#include <string>

namespace headroom::ctl::check {
namespace {

// With the kubelet's rule, memory.available stays high while the kernel swaps: pods thrash, and no
// memory threshold is crossed.
Finding check_swap(const HostFacts& facts) {
  if (!facts.swap && facts.thrash_aware)
    return {"swap", State::kOk,
            "off: memory.available is the kubelet's, and MemAvailable without page cache while the "
            "node thrashes (thrashAware: true)",
            "", ""};
  if (!facts.swap)
    return {"swap", State::kOk,
            "off: memory.available is the kubelet's (swapAware acts on a node with swap only)", "",
            ""};
  if (facts.swap_aware)
    return {"swap", State::kOk,
            "on: memory.available counts what swap gains and costs (swapAware: true), because the "
            "kernel swaps before the kubelet's value is low",
            "", ""};
  if (facts.swap_threshold)
    return {"swap", State::kOk,
            "on: memory.available is the kubelet's (swapAware: false), and swap.available has a "
            "threshold",
            "", ""};
  return {"swap", State::kLimited,
          "on: memory.available is the kubelet's (swapAware: false), and swap.available has no "
          "threshold",
          "memory.available does not fall low before swap is full: no pod is evicted until then",
          "headroom.swapAware: true, or set swap.available in evictionHard, such as 10%"};
}

Finding check_kernel_memory(const HostFacts& facts) {
  const Bytes unaccounted = facts.unaccounted.value_or(Bytes{});
  const std::string held = report::human_bytes(unaccounted.count) + " in neither anon nor file";
  if (!facts.kernel_threshold)
    return {"kernel memory", State::kLimited, held + "; kernel.memAvailable has no threshold",
            "memory.available counts that as available: the kernel's OOM killer may act first",
            "headroom.kernelMemAvailable: 50Mi"};
  if (unaccounted.count <= facts.memory.count / 10)
    return {"kernel memory", State::kOk, held, "", ""};
  return {"kernel memory", State::kLimited, held,
          "memory.available counts that as available: kernel.memAvailable may be crossed first",
          "see Slab, PageTables and Percpu in /proc/meminfo; raise systemReserved"};
}

Finding check_zswap(const HostFacts& facts) {
  constexpr std::string_view kSubject = "zswap";
  constexpr const char* kCost =
      "headroom.podSwap.zswapWriteback: false has no effect: protected pods wait for the swap "
      "device";
  if (!facts.zswap_writeback)
    return {kSubject, State::kLimited, "the kernel has no memory.zswap.writeback", kCost,
            "Linux 6.8 or later with CONFIG_ZSWAP, or leave the key out"};
  if (!facts.zswap_enabled)
    return {kSubject, State::kLimited, "disabled", kCost,
            "zswap.enabled=1 on the kernel command line, or leave the key out"};
  return {kSubject, State::kOk, "enabled: what protected pods swap stays in it", "", ""};
}

}  // namespace

std::vector<Finding> memory_findings(const HostFacts& facts) {
  std::vector<Finding> all{check_swap(facts), check_kernel_memory(facts)};
  if (facts.keeps_in_zswap) all.push_back(check_zswap(facts));
  return all;
}

}  // namespace headroom::ctl::check
