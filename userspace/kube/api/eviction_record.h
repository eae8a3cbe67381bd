// SPDX-License-Identifier: Apache-2.0
// Evicted: of a line of headroomd's audit log, what an API server is to know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

struct EvictionRecord {
  // The reasons that upstream's conditions and events distinguish.
  enum class Why : std::uint8_t { kThreshold, kLimit, kTaint };

  std::string uid;
  std::string name;
  std::string pod_namespace;
  Why why = Why::kThreshold;
  std::string signal;   // "memory.available"; "taint"
  std::string message;  // the kubelet's
  std::string time;     // of the decision, RFC 3339 in whole seconds: all the API server keeps
  std::string stamp;    // the same to the microsecond, as digits of hexadecimal: 16 of them
  friend bool operator==(const EvictionRecord&, const EvictionRecord&) = default;
};

// Absent: the line is not about a pod that died. In observe mode no pod dies; a pod that vanished
// or could not be signalled was not evicted; for a part of a pod (a container, a process) the
// kubelet does the rest; a pod without a name does not exist in the API.
std::optional<EvictionRecord> parse_eviction(std::string_view line);

}  // namespace headroom::kube
