// SPDX-License-Identifier: Apache-2.0
// The families that are read when scraped: the daemon's CPU time by thread, the machine's size.
#include "base/thread_cpu_time.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

#include <unistd.h>

namespace headroom::report {
void add_process_families(Families& families) {
  auto threads = MetricFamilyBuilder::counter(
      "headroom_thread_cpu_seconds_total",
      "CPU time used by headroomd, by thread. CPU time of its BPF programs is not included.");
  double all = 0;
  for (const ThreadCpuTime& each : cpu_time_by_thread()) {
    const double used = std::chrono::duration<double>(each.cpu).count();
    all += used;
    threads.add(used, {{"thread", each.part}});
  }
  threads.append_to(families);
  if (all > 0)
    MetricFamilyBuilder::counter("process_cpu_seconds_total",
                                 "Total user and system CPU time spent in seconds.")
        .add(all)
        .append_to(families);
}

void add_machine_families(const NodeView& node, std::string_view node_name, Families& families) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (cores > 0)
    MetricFamilyBuilder::gauge("machine_cpu_cores", "Online CPUs.")
        .add(static_cast<double>(cores))
        .append_to(families);
  if (const auto& memory = of(node.observations, Signal::kMemoryAvailable))
    MetricFamilyBuilder::gauge("machine_memory_bytes", "Memory of the machine.")
        .add(static_cast<double>(memory->capacity))
        .append_to(families);
  if (!node_name.empty())
    MetricFamilyBuilder::gauge("kubelet_node_name", "1. The node's name is in the label.")
        .add(1.0, {{"node", node_name}})
        .append_to(families);
}

}  // namespace headroom::report
