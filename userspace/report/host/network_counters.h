// SPDX-License-Identifier: Apache-2.0
// Counters of network devices: of the node, and of each pod with a network namespace of its own.
//
// They are read from /proc/PID/net/dev of a process in the pod: no namespace is entered.
#pragma once

#include "report/view/node_view.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

struct NetworkCounts {
  std::uint64_t bytes = 0, packets = 0, errors = 0, dropped = 0;
  friend bool operator==(const NetworkCounts&, const NetworkCounts&) = default;
};

struct NetworkDevice {
  std::string name;
  NetworkCounts received, sent;
  friend bool operator==(const NetworkDevice&, const NetworkDevice&) = default;
};

using NetworkDevices = std::vector<NetworkDevice>;

// The devices of /proc/net/dev without those that cAdvisor leaves out: the loopback, and the ends
// of other namespaces' devices (veth, docker).
NetworkDevices parse_network_devices(std::string_view text);

// Which /proc/PID/net/dev it is.
struct NetworkFile {
  dev_t device = 0;
  ino_t inode = 0;  // 0: none
  friend bool operator==(const NetworkFile&, const NetworkFile&) = default;
};

class NetworkReader {
 public:
  explicit NetworkReader(std::string cgroup_root, std::string proc = "/proc");

  // Of headroomd's own namespace, which is the node's.
  NetworkDevices of_node() const;
  // Of the namespace of a process in the cgroup with this path: empty if it is the node's; absent
  // if the cgroup has no process.
  std::optional<NetworkDevices> of_cgroup(std::string_view path) const;

 private:
  std::string cgroup_root_, proc_;
  NetworkFile own_devices_;
};

// The devices of the node or of one pod.
struct NetworkRow {
  std::size_t record = 0;       // of the root, or of the cgroup in the pod whose process was asked
  const PodRow* pod = nullptr;  // null: of the node
  NetworkDevices devices;
};

// Of the node and of every pod that has devices. `is_preferred`: a record whose process is asked
// before those of its pod's others.
std::vector<NetworkRow> network_rows(const CgroupTable& table, const NetworkReader& reader,
                                     const std::function<bool(std::size_t)>& is_preferred);

}  // namespace headroom::report
