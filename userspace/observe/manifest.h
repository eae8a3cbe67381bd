// SPDX-License-Identifier: Apache-2.0
// Manifests: the v1 Pods a directory of YAML or JSON files describes.
//
// What is read is what eviction and admission need: identity, resources, priority, grace, where it
// may be placed. The rest of a Pod's
// large schema is the API server's to check. Like the API server, a request that is absent is
// taken from its limit.
#pragma once

#include "config/complaint.h"

#include <headroom/pod.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::observe {

struct ManifestOptions {
  // The kubelet calls a pod static when it runs it from a file, and never evicts one. Our directory
  // only describes pods that someone else runs: were they static for lying there, none could ever
  // be evicted. So a pod is static if its annotations say so (kubernetes.io/config.source other
  // than api, or kubernetes.io/config.mirror), or if the operator says so of the whole directory:
  // it is the kubelet's own staticPodPath.
  bool all_static = false;
};

// What could be read, beside what was wrong: a pod with any complaint of its own is left out. (Of a
// key that is there twice the first holds, and the pod stays.)
struct Manifests {
  std::vector<Pod> pods;
  config::Complaints complaints;
};

// One file: any number of documents, each a Pod, a PodList or a List of Pods.
Manifests parse_manifests(const std::string& text, const std::string& file,
                          ManifestOptions options = {});

// *.yaml, *.yml and *.json of the directory, by name; hidden and backup files are passed over. A
// directory that is not there holds no pods. For a reload: good pods are kept whatever else is
// wrong.
Manifests read_manifests(const std::filesystem::path& directory, ManifestOptions options = {});

// The same, all or nothing.
tl::expected<std::vector<Pod>, config::Complaints> load_manifests(
    const std::filesystem::path& directory, ManifestOptions options = {});

// The uid of a pod whose manifest has none, from its namespace and name alone: the same on every
// run and every node. It has the form of a UUID of version 8 (RFC 9562: vendor-specific). Whoever
// makes the pod's cgroup names it by this uid, or the two are not joined. (The kubelet's own hash
// for static pods covers its host name and defaulted spec, which we cannot know; see
// kubernetes.io/config.hash.)
std::string derived_uid(std::string_view pod_namespace, std::string_view name);

}  // namespace headroom::observe
