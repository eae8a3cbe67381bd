// SPDX-License-Identifier: Apache-2.0
// What is read when scraped: the daemon's cost by part, the machine's size, the kernel's OOM kills.
#include "base/thread_cpu_time.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

#include <unistd.h>

namespace headroom::report {
namespace {

// /proc/vmstat: "oom_kill 3"; since the machine started, by a limit or by the node's lack.

}  // namespace

void add_process_families(Families& families) {
  auto cpu = MetricFamilyBuilder::counter(
      "headroom_self_cpu_seconds_total",
      "CPU time headroomd used, by part; what BPF programs use in others' "
      "time is not in it.");
  for (const ThreadCpuTime& each : cpu_time_by_thread())
    cpu.add(std::chrono::duration<double>(each.cpu).count(), {{"part", each.part}});
  cpu.append_to(families);
}

void add_machine_families(const NodeView& node, std::string_view node_name, Families& families) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (cores > 0)
    MetricFamilyBuilder::gauge("machine_cpu_cores", "CPUs online.")
        .add(static_cast<double>(cores))
        .append_to(families);
  if (const auto& memory = of(node.observations, Signal::kMemoryAvailable))
    MetricFamilyBuilder::gauge("machine_memory_bytes", "Memory of the machine.")
        .add(static_cast<double>(memory->capacity))
        .append_to(families);
  if (!node_name.empty())
    MetricFamilyBuilder::gauge("kubelet_node_name", "1: the node's name.")
        .add(1.0, {{"node", node_name}})
        .append_to(families);
}

}  // namespace headroom::report
