// SPDX-License-Identifier: Apache-2.0
// ScrapeBody: the response to a scrape: the daemon's own families, then those of every cgroup and
// every pod, in chunks of limited size.
#pragma once

#include "report/http/response_body.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/cgroup_labels.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/exposition/host_families.h"
#include "report/metrics/exposition/pod_families.h"
#include "report/view/node_view.h"
#include "report/view/pod_index.h"
#include "report/view/pod_waits.h"
#include "report/view/published.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

// Whether the name is one of the patterns, which may have * and ?.
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

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
  CgroupScope scope = CgroupScope::kAll;
  std::vector<std::string> exclude = {};  // names of families, with * and ?
  ContainerNames* names = nullptr;
  QosOf qos_of = nullptr;
  const HostReaders* host = nullptr;  // null: HostFamilies have no series
  Observations observations = {};     // of filesystems, to know which ones answer
};

class ScrapeBody final : public ChunkedBody {
 public:
  explicit ScrapeBody(ScrapeSetup setup);

 private:
  bool append_chunk(std::string& out) override;
  bool append_own(std::string& out);
  bool append_cgroups(std::string& out);
  bool append_host(std::string& out);
  bool append_pods(std::string& out);
  // Appends some series of the current family; false: those were the last.
  bool append_series(std::string& out);
  void select_families();
  void select_series();
  bool is_excluded(std::string_view family) const;
  // Whether a family of the source is not excluded.
  bool is_wanted(HostSource source) const;

  // What the series of a family are about, and their labels, of labels_.
  struct Series {
    std::size_t record;
    std::string_view labels;
  };

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
  std::unordered_map<std::uint64_t, const CpuWaits*> cpu_waits_;  // by the pod's cgroup
  std::size_t next_own_ = 0;
  std::vector<NamedFamily> families_;          // the cgroup families of this scrape
  std::array<std::vector<Series>, 3> series_;  // by FamilyOf
  std::size_t cgroup_family_ = 0;
  std::size_t next_series_ = 0;  // of the family
  std::optional<HostSamples> host_samples_;
  std::size_t host_family_ = 0;
  bool header_written_ = false;  // the current family had a sample, so its header is written
  std::size_t pod_family_ = 0;
  bool ended_ = false;
};

}  // namespace headroom::report
