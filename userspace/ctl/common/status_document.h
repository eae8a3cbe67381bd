// SPDX-License-Identifier: Apache-2.0
// Status: headroomd's status document, parsed. A field that is missing or null in the document is
// absent.
#pragma once

#include <headroom/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::ctl {

struct SignalStatus {
  std::string signal;
  std::optional<std::int64_t> available;
  std::optional<std::int64_t> capacity;
};

struct ThresholdStatus {
  std::string signal;
  std::string kind;  // "hard", "soft"
  double grace_seconds = 0;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> available;
  std::optional<double> below_for_seconds;
  bool met = false;
  std::optional<double> forecast_seconds;
};

// Waits of one cause: for memory, or for CPU quota.
struct WaitStatus {
  std::int64_t ns = 0;
  std::int64_t count = 0;
  std::optional<std::int64_t> p99_ns;  // 99th percentile of one wait
};
using StallsByCause = std::map<std::string, WaitStatus>;  // by cause

// Waits for a CPU: the cause and nanoseconds, in the document's order.
using CpuWaitsByCause = std::vector<std::pair<std::string, std::int64_t>>;

// A pod that waited, and the pod that had what it waited for; "": outside pods.
struct WaitPairStatus {
  std::string waiter, holder;  // "namespace/name"
  std::int64_t ns = 0;
};

struct ProgramStatus {
  bool loaded = false;
  std::string hook;
  std::int64_t lost = 0;
};

struct PodStatus {
  std::string pod_namespace;
  std::string name;
  std::string uid;
  std::string qos;
  std::int64_t priority = 0;
  std::string state;
  std::optional<std::int64_t> working_set;
  std::optional<std::int64_t> request;
  std::optional<std::int64_t> limit;  // absent: no limit, or unknown
  std::optional<std::int64_t> over;
  std::optional<std::int64_t> disk;
  std::optional<std::int64_t> swap;
  std::optional<std::int64_t> tasks;
  std::optional<std::int64_t> oom_kills;
  // Its place among the pods that would be evicted for memory.available: 1 is the first. Absent:
  // it would not be evicted, or the daemon is older.
  std::optional<std::int64_t> eviction_order;
  // Totals, in nanoseconds.
  std::optional<std::int64_t> cpu;
  std::optional<std::int64_t> throttled;
  std::optional<std::int64_t> memory_waiting;
  std::optional<StallsByCause> stalls;       // absent: unknown
  std::optional<CpuWaitsByCause> cpu_waits;  // absent: unknown
  std::optional<double> cpu_burst;           // CPUs granted above its quota; absent: older daemon
  bool cpu_suppressed = false;               // its CPU time (cpuSuppress)
  std::vector<std::string> ignored;          // fields of its description that could not be parsed
};

// Quantities as the document writes them: "3500m", "7Gi"; by resource.
using Resources = std::map<std::string, std::string>;

struct NodeResources {
  Resources capacity, reserved, allocatable, requested, limits;
};

// memory.available on a node with swap, or watched for thrashing without; bytes.
struct SwapStatus {
  std::int64_t available = 0;
  bool in_force = false;
  bool swap = true;   // the node has swap
  std::string bound;  // "kubelet", "room", "thrashing"
  std::int64_t kubelet = 0, memory = 0, gain = 0, filling = 0;
  std::int64_t resident = 0, cold = 0, compressed = 0, compressed_size = 0, on_disk = 0;
};

// What was done about pods at their own limits and about cold memory; bytes and counts.
struct PodMemoryStatus {
  std::int64_t raised_limits = 0, raised_bytes = 0, raises = 0, lowerings = 0;
  std::int64_t background_reclaimed = 0, cold_pushed = 0, cold_returned = 0;
};

// A predictor of the pods' memory peak in the next hour, and its earlier forecasts.
struct MemoryForecastStatus {
  std::string predictor;
  std::optional<std::int64_t> bytes;
  std::int64_t held = 0, exceeded = 0;
  std::optional<double> mean_error;  // share of the peak
};

// headroom.cpuBurst; the CPUs and pods are of now.
struct CpuBurstStatus {
  std::int64_t pods = 0, granted = 0, withdrawn = 0;
  double cpus = 0;
};

// headroom.cpuSuppress; the pods are of now.
struct CpuSuppressStatus {
  std::int64_t pods = 0, suppressed = 0, released = 0;
};

// headroom.podSwap; the pods are of now.
struct PodSwapStatus {
  std::int64_t limited = 0, kept_in_zswap = 0, throttles = 0, set = 0;
};

struct Status {
  std::string version;
  std::string mode;
  std::optional<std::int64_t> at_ns;
  std::optional<std::int64_t> pods_at_ns;
  std::vector<SignalStatus> signals;
  std::optional<SwapStatus> swap;  // absent: no swap, and not watched
  PodMemoryStatus pod_memory;
  CpuBurstStatus cpu_burst;
  CpuSuppressStatus cpu_suppress;
  PodSwapStatus pod_swap;
  std::vector<ThresholdStatus> thresholds;
  std::map<std::string, bool> conditions;
  std::vector<std::string> taints;  // "dedicated=gpu:NoExecute"
  NodeResources node;
  std::vector<PodStatus> pods;
  std::optional<std::int64_t> cgroups;
  std::optional<std::int64_t> evicted;
  std::optional<std::int64_t> would_evict;
  std::optional<std::int64_t> failed;
  std::optional<std::int64_t> missing_readings;
  std::optional<double> self_cpu_seconds;
  std::optional<std::int64_t> self_resident;
  std::optional<std::int64_t> kernel_oom_kills;
  std::map<std::string, double> forecast_errors;  // mean seconds, by signal
  std::vector<MemoryForecastStatus> memory_forecasts;
  StallsByCause stalls;  // all cgroups together
  std::vector<WaitPairStatus> cpu_pairs, memory_pairs;
  std::map<std::string, std::string> sources;
  std::map<std::string, ProgramStatus> programs;
  std::string audit_log;
};

Result<Status> parse_status(std::string_view document);

}  // namespace headroom::ctl
