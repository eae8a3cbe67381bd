// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/hints/device_hints.h"

#include <algorithm>
#include <limits>

namespace headroom {
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
