// SPDX-License-Identifier: Apache-2.0
// Evicted: of a line of headroomd's audit log, what an API server is to know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

struct EvictionRecord {
  // What upstream's conditions and events tell apart.
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

// Nothing: the line tells of no pod that died. In observe mode nobody did; who vanished or could
// not be signalled was not evicted; of a part of a pod (a container, a process) the kubelet takes
// care; and a pod without a name is none of the API server's.
std::optional<EvictionRecord> parse_eviction(std::string_view line);

}  // namespace headroom::kube
