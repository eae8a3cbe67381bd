// SPDX-License-Identifier: Apache-2.0
// Sample: a node worth showing, the same in every test of report/ and ctl/.
#pragma once

#include "judge/forecast/peak_forecast.h"
#include "report/eviction/eviction.h"
#include "report/view/node_view.h"

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::test {

using report::CgroupTable;
using report::Eviction;
using report::NodeView;

inline Instant sample_at(std::int64_t ms) {
  return Instant(std::chrono::milliseconds(ms));
}

std::shared_ptr<Pod> sample_pod(const std::string& name, QosClass qos, std::int32_t priority = 0);

// Everything known and different.
hr_record full_record(std::uint64_t id, std::uint64_t parent);

class SampleNames final : public report::CgroupNames {
 public:
  std::string_view path_of(CgroupId id) const override;
  // 2026-01-01 and as many seconds as the id says.
  std::uint64_t started_ns(CgroupId id) const override {
    return (1'767'225'600 + id.value) * 1'000'000'000;
  }
  std::map<std::uint64_t, std::string> paths;
};

// 1 root; 2 kubepods; 3 pod hog (full), 4 its container "app"; 5 pod web, without pressure or a
// limit; 6 pod quiet, nothing known; 7 a cgroup whose name is not known.
hr_waits sample_waits(std::uint64_t ns, hr_u32 brief, hr_u32 longer);
CgroupTable sample_cgroups();
NodeView sample_node();
// Of 200 forecasts of the first predictor two were too low; the others know nothing.
PeakForecast::Records sample_forecasts();
report::NodeStatusRef sample_status();
// The status document, read again.
nlohmann::ordered_json status_json(const NodeView& node, const CgroupTable& cgroups,
                                   report::QosOf qos_of,
                                   std::optional<std::size_t> most = std::nullopt);
// kubepods as it should be; the kube reserve changed by another writer; besteffort not there.
report::SlicesRef sample_slices();
Eviction sample_eviction();

}  // namespace headroom::test
