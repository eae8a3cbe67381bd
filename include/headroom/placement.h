// SPDX-License-Identifier: Apache-2.0
// Placement: where a pod may run by its specification: labels, selectors, ports.
#pragma once

#include <headroom/taint.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

using Labels = std::map<std::string, std::string, std::less<>>;

// One line of a term: "key operator values".
struct LabelRequirement {
  enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values{};
  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

// All requirements must match. A term without requirements matches no node.
struct NodeTerm {
  std::vector<LabelRequirement> labels{};  // matchExpressions
  std::vector<LabelRequirement> fields{};  // matchFields: only metadata.name exists
  friend bool operator==(const NodeTerm&, const NodeTerm&) = default;
};

struct PreferredTerm {
  std::int32_t weight = 1;  // 1 … 100
  NodeTerm term;
  friend bool operator==(const PreferredTerm&, const PreferredTerm&) = default;
};

// A port of the node that a container uses (hostPort).
struct HostPort {
  enum class Protocol : std::uint8_t { kTcp, kUdp, kSctp };
  std::uint16_t port = 0;
  Protocol protocol = Protocol::kTcp;
  std::string address{};  // hostIP; empty: every address
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
constexpr std::string_view name(HostPort::Protocol protocol) {
  switch (protocol) {
    case HostPort::Protocol::kTcp:
      return "TCP";
    case HostPort::Protocol::kUdp:
      return "UDP";
    case HostPort::Protocol::kSctp:
      return "SCTP";
  }
  return "";
}

struct Placement {
  std::string node_name{};  // empty: any
  Labels node_selector{};
  std::optional<std::vector<NodeTerm>> required{};  // one of them must match; absent: no such rule
  std::vector<PreferredTerm> preferred{};
  std::vector<Toleration> tolerations{};  // as written; see judge/admission/taints.h
  std::vector<HostPort> host_ports{};
  bool daemon_set = false;  // a DaemonSet's pod tolerates the node's condition taints
  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace headroom
