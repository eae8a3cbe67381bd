// SPDX-License-Identifier: Apache-2.0
// Where pods are described: the operator's directory, what headroom-kube has from the kubelet, and
// what headroomctl run has started.
#pragma once

#include "config/config.h"
#include "config/run_paths.h"
#include "manifest/manifest_cache.h"

#include <vector>

namespace headroom::daemon {

// The kubelet's come first: it knows what it runs.
inline std::vector<observe::ManifestSource> manifest_sources(const config::Config& config) {
  std::vector<observe::ManifestSource> sources;
  if (!config.kubernetes.kubelet.url.empty())
    sources.push_back({config.kubernetes.pods_dir(), {.of_kubelet = true}});
  sources.push_back({config.pod_manifests, {}});
  sources.push_back({config::run_manifests(config), {}});
  return sources;
}

}  // namespace headroom::daemon
