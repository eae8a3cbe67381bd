// SPDX-License-Identifier: Apache-2.0
// The body of a scrape's answer: the daemon's own families, then those of every cgroup and every
// pod, in bounded memory whatever their number.
#pragma once

#include "report/http/response_body.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/cgroup_labels.h"
#include "report/metrics/exposition/cgroup_waits.h"
#include "report/metrics/exposition/exposition_format.h"
#include "report/view/node_view.h"
#include "report/view/pod_index.h"
#include "report/view/published.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

// Another name for the series of a CgroupFamily.
struct CgroupFamilyAlias {
  std::string_view family;
  std::string_view name;
  std::string help;
};

struct ScrapeSetup {
  Format format = Format::kText;
  std::vector<prometheus::MetricFamily> own_families;
  Published<CgroupTable>::ReadGuard cgroups;    // may be empty: none published yet
  bool cadvisor_families = true;                // container_*
  bool headroom_families = true;                // headroom_cgroup_*, headroom_pod_*
  std::uint64_t read_at_ns = HR_UNKNOWN;        // the time of the table, as wall time
  std::vector<CgroupFamilyAlias> aliases = {};  // written after the families themselves
  ContainerNames* names = nullptr;
  QosOf qos_of = nullptr;
};

class ScrapeBody final : public ChunkedBody {
 public:
  explicit ScrapeBody(ScrapeSetup setup);

 private:
  bool append_chunk(std::string& out) override;
  bool append_own(std::string& out);
  bool append_cgroups(std::string& out);
  bool append_pods(std::string& out);
  void append_records(std::string& out);
  void select_families();

  // A family under its own name, or under an alias.
  struct NamedFamily {
    const CgroupFamily& family;
    std::string_view name;
    std::string_view help;
  };

  ScrapeSetup setup_;
  std::optional<CgroupLabels> labels_;
  std::optional<PodIndex> index_;
  std::optional<CgroupWaits> waits_;
  std::size_t next_own_ = 0;
  std::vector<NamedFamily> families_;  // those that are written
  std::size_t cgroup_family_ = 0;
  std::size_t record_ = 0;
  bool header_written_ = false;  // the current family had a sample, so its header is written
  std::size_t pod_family_ = 0;
  bool ended_ = false;
};

}  // namespace headroom::report
