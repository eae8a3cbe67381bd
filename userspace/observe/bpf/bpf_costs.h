// SPDX-License-Identifier: Apache-2.0
// BpfCosts: the run time of the BPF programs this process holds, as the kernel counts it while
// kernel.bpf_stats_enabled is set.
#pragma once

#include <headroom/units.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::observe {

struct BpfCost {
  std::string program;
  Duration run{0};
  std::uint64_t runs = 0;
};

class BpfCosts {
 public:
  // The programs that are loaded now.
  static BpfCosts of_this_process();

  // Those that are still loaded and have run since counting began; none while counting is off. On
  // any thread.
  std::vector<BpfCost> read() const;

 private:
  std::vector<std::uint32_t> ids_;
};

}  // namespace headroom::observe
