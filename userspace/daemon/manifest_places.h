// SPDX-License-Identifier: Apache-2.0
// Where pods are described: the operator's directory, and what headroom-kube has from the kubelet.
#pragma once

#include "config/config.h"
#include "observe/manifest_shelf.h"

#include <vector>

namespace headroom::daemon {

// The kubelet's come first: it knows what it runs.
inline std::vector<observe::ManifestPlace> manifest_places(const config::Config& config) {
  std::vector<observe::ManifestPlace> places;
  if (!config.kubernetes.kubelet.url.empty())
    places.push_back({config.kubernetes.pods_dir(), {.of_kubelet = true}});
  places.push_back({config.pod_manifests, {}});
  return places;
}

}  // namespace headroom::daemon
