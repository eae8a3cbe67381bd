// SPDX-License-Identifier: Apache-2.0
// EvictionRecord: the part of one line of headroomd's audit log that is sent to the API server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

struct EvictionRecord {
  // The reasons that upstream's conditions and events distinguish.
  enum class Cause : std::uint8_t { kThreshold, kLimit, kTaint };

  std::string uid;
  std::string name;
  std::string pod_namespace;
  Cause cause = Cause::kThreshold;
  std::string signal;   // "memory.available"; "taint"
  std::string message;  // in the kubelet's wording
  std::string time;     // of the decision, RFC 3339 in whole seconds, as the API server keeps it
  std::string stamp;    // the same in microseconds since 1970, as 16 hexadecimal digits
  friend bool operator==(const EvictionRecord&, const EvictionRecord&) = default;
};

// Absent if the line is not about a pod that was killed: in observe mode no pod is killed; a pod
// that vanished or could not be signalled was not evicted; for a part of a pod (a container, a
// process) the kubelet does the rest; a pod without a name does not exist in the API.
std::optional<EvictionRecord> parse_eviction(std::string_view line);

}  // namespace headroom::kube
