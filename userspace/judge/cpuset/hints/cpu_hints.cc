// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/hints/cpu_hints.h"

#include "judge/cpuset/hints/hint_merge.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace headroom {
namespace {

struct Node {
  std::int64_t id;
  int all;   // CPUs it has
  int free;  // of them, available or reusable
};

std::vector<Node> nodes_for(const Topology& topology, const HintRequest& request) {
  const CpuSet usable = request.available | request.reusable;
  std::vector<Node> nodes;
  for (const CpuGroup& node : topology.groups(Level::kNuma))
    nodes.push_back({node.id, node.cpus.size(), node.cpus.overlap(usable)});
  return nodes;
}

std::vector<Node> largest_first(std::vector<Node> nodes, int Node::*cpus) {
  std::ranges::stable_sort(nodes, std::greater{}, cpus);
  return nodes;
}

// How many of the largest nodes it takes to reach `count`; absent: all are too few.
std::optional<int> fewest_nodes_for(const std::vector<Node>& nodes, int Node::*cpus, int count) {
  int sum = 0;
  int taken = 0;
  for (const Node& node : largest_first(nodes, cpus)) {
    ++taken;
    sum += node.*cpus;
    if (sum >= count) return taken;
  }
  return std::nullopt;
}

class Hints {
 public:
  Hints(const Topology& topology, const HintRequest& request, WorkCounter& work)
      : request_(request),
        nodes_(nodes_for(topology, request)),
        required_nodes_(topology.nodes_of(request.reusable)),
        work_counter_(work) {}

  HintList from(int narrowest) {
    int tried = 0;
    for (auto size = static_cast<std::size_t>(narrowest); size <= nodes_.size(); ++size) {
      const bool finished = for_each_subset(nodes_.size(), size, [&](const auto& picked) {
        if (++tried > kMaxHintSubsets) return false;
        ++work_counter_.steps;
        add_hint(picked);
        return true;
      });
      if (!finished) break;
    }
    if (tried > kMaxHintSubsets) add_freest_hint();
    return std::move(hints_);
  }

 private:
  void add_hint(const std::vector<std::size_t>& picked) {
    NodeSet nodes;
    int free = 0;
    for (const std::size_t i : picked) {
      nodes = nodes | NodeSet::of(nodes_[i].id);
      free += nodes_[i].free;
    }
    if (free >= request_.count && nodes.contains(required_nodes_))
      hints_.push_back({nodes, /*preferred=*/false});
  }

  // Too many to look at: the freest nodes at least are always among the hints.
  void add_freest_hint() {
    NumaHint freest{required_nodes_, /*preferred=*/false};
    int free = 0;
    for (const Node& node : nodes_)
      if (required_nodes_.contains(node.id)) free += node.free;
    for (const Node& node : largest_first(nodes_, &Node::free)) {
      if (free >= request_.count || required_nodes_.contains(node.id)) continue;
      freest.nodes = *freest.nodes | NodeSet::of(node.id);
      free += node.free;
    }
    if (std::ranges::find(hints_, freest) == hints_.end()) hints_.push_back(freest);
  }

  const HintRequest& request_;
  std::vector<Node> nodes_;
  NodeSet required_nodes_;
  WorkCounter& work_counter_;
  HintList hints_;
};

int sockets_of(const Topology& topology, NodeSet nodes) {
  std::vector<std::size_t> sockets;
  for (const CpuGroup& node : topology.groups(Level::kNuma))
    if (nodes.contains(node.id))
      for (const Cpu cpu : node.cpus)
        sockets.push_back(topology.group_of(Level::kSocket, cpu));
  std::ranges::sort(sockets);
  return static_cast<int>(std::unique(sockets.begin(), sockets.end()) - sockets.begin());
}

// Spans no more sockets than the narrowest subset needs.
bool socket_aligned(const Topology& topology, NodeSet nodes, int narrowest) {
  const int per_socket = topology.count(Level::kNuma) / topology.count(Level::kSocket);
  if (per_socket == 0) return false;
  return sockets_of(topology, nodes) == (narrowest + per_socket - 1) / per_socket;
}

}  // namespace

HintList cpu_hints(const Topology& topology, const HintRequest& request, WorkCounter* work) {
  WorkCounter uncounted;
  const std::vector<Node> nodes = nodes_for(topology, request);
  const auto narrowest_free = fewest_nodes_for(nodes, &Node::free, request.count);
  if (!narrowest_free) return {};
  HintList hints =
      Hints(topology, request, work ? *work : uncounted).from(std::max(1, *narrowest_free));
  // What would do if all CPUs were free, the kubelet's measure: on a busy node no hint may be
  // preferred, and `restricted` refuses (kubernetes/kubernetes 84597).
  const int narrowest = *fewest_nodes_for(nodes, &Node::all, request.count);
  for (NumaHint& hint : hints)
    hint.preferred = hint.nodes->count() == narrowest ||
                     (request.align_by_socket && socket_aligned(topology, *hint.nodes, narrowest));
  return hints;
}

namespace {

NodeSet nearest(const NumaMap& numa, std::int64_t to) {
  if (to < NodeSet::kMax && numa.nodes.contains(to)) return NodeSet::of(to);
  NodeSet nodes;
  int least = std::numeric_limits<int>::max();
  for (const int node : numa.nodes.ids()) {
    const int distance = numa.distance(static_cast<int>(to), node);
    if (distance > least) continue;
    nodes = distance < least ? NodeSet::of(node) : nodes | NodeSet::of(node);
    least = distance;
  }
  return nodes;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string> requested_devices(const Pod& pod) {
  std::vector<std::string> devices;
  const auto named = pod.annotations.find(std::string(kNearDevicesAnnotation));
  if (named == pod.annotations.end()) return devices;
  for (std::string_view rest = named->second; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (const auto device = trimmed(word); !device.empty()) devices.emplace_back(device);
  }
  return devices;
}

ProviderHints device_hints(const DeviceNodes& devices, const NumaMap& numa, const Pod& pod) {
  ProviderHints hints;
  for (const std::string& device : requested_devices(pod)) {
    const auto at = devices.find(device);
    if (at == devices.end()) continue;
    HintList list;
    for (const int node : nearest(numa, at->second).ids())
      list.push_back({NodeSet::of(node), /*preferred=*/true});
    list.push_back({std::nullopt, /*preferred=*/false});
    hints.emplace("pci " + device, std::move(list));
  }
  return hints;
}

}  // namespace headroom
