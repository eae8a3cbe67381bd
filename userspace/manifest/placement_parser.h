// SPDX-License-Identifier: Apache-2.0
// Reads where a pod may be: the selectors, affinity, tolerations and host ports of a manifest.
#pragma once

#include "config/yaml/section.h"

#include <headroom/placement.h>

namespace headroom::observe {

// A map of labels or annotations; absent: none.
Labels read_labels(const config::Section& section, std::string_view key);

// Of `spec`; complains, by the API server's rules, of what could not mean anything.
void read_placement(const config::Section& spec, Placement& placement);

// Of one container. On the host's network every port of it is one of the host's.
void read_host_ports(const config::Section& container, bool host_network,
                     std::vector<HostPort>& ports);

// `metadata.ownerReferences` has a DaemonSet.
bool owned_by_daemon_set(const config::Section& metadata);

}  // namespace headroom::observe
