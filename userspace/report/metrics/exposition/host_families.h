// SPDX-License-Identifier: Apache-2.0
// Families of cAdvisor's whose values are read from the host during the scrape: network devices,
// processes and their open files, filesystems.
#pragma once

#include "report/host/host_readers.h"
#include "report/view/node_view.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/metric_type.h>

namespace headroom::report {

enum class HostSource : std::uint8_t { kNetwork, kProcesses, kFilesystems };

// HostFamily: one value of every sample of its source, as cAdvisor names it.
struct HostFamily {
  std::string_view name;
  std::string_view help;
  HostSource source;
  std::size_t value;  // in HostSample::values
  prometheus::MetricType type = prometheus::MetricType::Gauge;
};

std::span<const HostFamily> host_families();

// The values of one network device, cgroup or filesystem.
struct HostSample {
  std::size_t record = 0;  // the cgroup that the series are labelled with
  std::string extra_labels = {};
  std::array<std::optional<double>, 8> values = {};
};

// Which samples are read.
struct HostSelection {
  std::function<bool(HostSource source)> is_wanted;
  // Such a record's process is asked for the pod's network before the others'.
  std::function<bool(std::size_t record)> is_pod_internal;
  // Whether the processes of the record are counted.
  std::function<bool(std::size_t record)> has_series;
};

class HostSamples {
 public:
  // Filesystems whose signal `observations` does not have are not read.
  HostSamples(const CgroupTable& table, const HostReaders& readers,
              const Observations& observations, const HostSelection& selection);

  std::span<const HostSample> of(HostSource source) const {
    return samples_[static_cast<std::size_t>(source)];
  }

 private:
  std::array<std::vector<HostSample>, 3> samples_;
};

}  // namespace headroom::report
