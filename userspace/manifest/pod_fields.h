// SPDX-License-Identifier: Apache-2.0
// What the parsers of a pod's manifest share: the pod, its placement, its quantities.
#pragma once

#include "config/yaml/section.h"

#include <headroom/placement.h>
#include <headroom/pod.h>

#include <string_view>

namespace headroom::observe {

// read_pod(): one v1 Pod object as a Pod.

// What is wrong is complained of; the pod is then only as good as what could be read.
Pod read_pod(const config::Section& object);

// Reads where a pod may be: the selectors, affinity, tolerations and host ports of a manifest.

// A map of labels or annotations; absent: none.
Labels read_labels(const config::Section& section, std::string_view key);

// Of `spec`; complains, by the API server's rules, of what could not mean anything.
void read_placement(const config::Section& spec, Placement& placement);

// Of one container. On the host's network every port of it is one of the host's.
void read_host_ports(const config::Section& container, bool host_network,
                     std::vector<HostPort>& ports);

// `metadata.ownerReferences` has a DaemonSet.
bool owned_by_daemon_set(const config::Section& metadata);

// read_quantities(): a map of resources, as requests, limits and their like are.

// Those that are wrong are complained of and left out.
inline ResourceList read_quantities(const config::Section& parent, std::string_view key) {
  ResourceList list;
  const auto section = parent.map(key);
  if (!section) return list;
  for (const config::yaml::Entry& entry : section->entries()) {
    const auto quantity = section->quantity(entry);
    if (!quantity) continue;
    if (quantity->sign() < 0)
      section->add_error(entry, "must not be negative, found " + quantity->canonical());
    else
      list.emplace(entry.key, *quantity);
  }
  return list;
}

}  // namespace headroom::observe
