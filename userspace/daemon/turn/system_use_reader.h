// SPDX-License-Identifier: Apache-2.0
// SystemUseReader: the part of a sweep that a recording keeps of what runs outside of the pods.
#pragma once

#include "config/config.h"
#include "recording/system_use.h"
#include "report/view/node_view.h"

#include <headroom/snapshot.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::daemon {

class SystemUseReader {
 public:
  // Near a threshold there are sweeps every few milliseconds; use is kept of one in this time.
  static constexpr Duration kPeriod = std::chrono::seconds(1);

  // `names` must outlive this.
  SystemUseReader(const report::CgroupNames& names, const config::Config& config);

  void reconfigure(const config::Config& config);
  // Null: the snapshot has no sweep, or is too soon after the last that was kept. Good until the
  // next call.
  const recording::SystemUse* read(const Snapshot& snapshot);

 private:
  // A cgroup that is kept, and its place in a pass.
  struct Place {
    std::size_t index = 0;
    CgroupId id;
  };
  void find(std::span<const hr_record> records);
  bool is_current(std::span<const hr_record> records, std::uint32_t order) const;

  const report::CgroupNames& names_;
  std::unordered_map<std::string, recording::SystemRole> roles_;  // by path
  std::vector<Place> places_;
  std::optional<std::uint32_t> order_;  // of the pass that places_ is of; absent: find them anew
  std::optional<Instant> last_;
  recording::SystemUse use_;
};

}  // namespace headroom::daemon
