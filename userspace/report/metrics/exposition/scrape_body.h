// SPDX-License-Identifier: Apache-2.0
// ScrapeBody: the response to a scrape: the daemon's own families, then those of every cgroup and
// every pod, in chunks of limited size.
#pragma once

#include "report/http/response_body.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/exposition/host_families.h"
#include "report/view/node_view.h"
#include "report/view/pod_index.h"
#include "report/view/pod_waits.h"
#include "report/view/published.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

// For pods without a manifest: the namespace and name that the runtime reports for one of their
// containers.
using RuntimePodNames = std::unordered_map<const PodRow*, std::pair<std::string, std::string>>;

// Which cgroups have series. Each has the node's own: the root, the cgroups directly below it, and
// those that hold pods.
enum class CgroupScope : std::uint8_t {
  kPods,
  kContainers,  // pods and their containers
  kAll,
};

// Whether the name is one of the patterns, which may have * and ?.
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

// CgroupLabels: the labels of every cgroup of a table, written once and used by every family.
class CgroupLabels {
 public:
  // `names` may be null: then only manifests and paths are used.
  explicit CgroupLabels(const CgroupTable& table, ContainerNames* names = nullptr);

  // cAdvisor's labels in Prometheus' order, escaped: container="web",id="/…",…; an unknown value is
  // "", as in cAdvisor. An empty result: the cgroup has no name and gets no series, because two
  // series with the same labels make a scrape invalid.
  std::string_view of(std::size_t record) const {
    const std::uint32_t begin = record == 0 ? 0 : ends_[record - 1];
    return std::string_view(text_).substr(begin, ends_[record] - begin);
  }

  // Whether the cgroup is inside a pod but is not one of its containers: the pause container, a
  // monitor, a cgroup that a container created. Pressure is not exported for these: measured on
  // real nodes, they were two thirds of the pressure series.
  bool is_pod_internal(std::size_t record) const { return is_pod_internal_[record]; }

  bool is_in(CgroupScope scope, std::size_t record) const;
  // Whether it is the root, directly below it, or above pods.
  bool is_of_node(std::size_t record) const { return is_of_node_[record]; }

  // A pod's name, from the runtime if there is no manifest. The views point into this object and
  // the table.
  struct PodName {
    std::string_view pod_namespace, name;
  };
  PodName name_of(const PodRow& row) const;

 private:
  std::string text_;
  std::vector<bool> is_pod_internal_;
  std::vector<CgroupScope> smallest_scope_;  // of those that the cgroup is in
  std::vector<bool> is_of_node_;
  RuntimePodNames runtime_pod_names_;
  std::vector<std::uint32_t> ends_;
};

// PodFamily: one quantity of every pod, as evictions see it. To export another, add a row to the
// table in the .cc, and to headroom-metrics(7).

// The input of PodFamily::read: one pod.
struct PodMetricInput {
  const PodRow& row;
  const hr_record* record = nullptr;  // of the pod's own cgroup; null: missing in this table
  QosOf qos_of = nullptr;
  const CpuWaits* cpu_waits = nullptr;  // null: unknown
};

// Adjacent rows with one name are one family: they differ in their extra labels.
struct PodFamily {
  std::string_view name;
  std::string_view help;
  std::optional<double> (*read)(const PodMetricInput&);
  // Labels beside namespace, pod and uid, ready to be written; null: none.
  std::string (*extra_labels)(const PodMetricInput&) = nullptr;
  prometheus::MetricType type = prometheus::MetricType::Gauge;
};

std::span<const PodFamily> pod_families();

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
  void append_records(std::string& out);
  // Empty: the cgroup has no series of this family.
  std::string_view labels_for(const CgroupFamily& family);
  void select_families();
  bool is_excluded(std::string_view family) const;
  // Whether a family of the source is not excluded.
  bool is_wanted(HostSource source) const;

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
  std::vector<NamedFamily> families_;  // the cgroup families of this scrape
  std::size_t cgroup_family_ = 0;
  std::size_t record_ = 0;
  std::string own_labels_;  // of record_, where they are not cAdvisor's
  std::optional<HostSamples> host_samples_;
  std::size_t host_family_ = 0;
  bool header_written_ = false;  // the current family had a sample, so its header is written
  std::size_t pod_family_ = 0;
  bool ended_ = false;
};

}  // namespace headroom::report
