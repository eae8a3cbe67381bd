// SPDX-License-Identifier: Apache-2.0
// Manifests: the v1 Pods that YAML or JSON files describe.
//
// What is read is what eviction and admission need: identity, resources, priority, grace, where it
// may be placed. The rest of a Pod's
// large schema is the API server's to check. Like the API server, a request that is absent is
// taken from its limit.
#pragma once

#include "config/yaml/yaml.h"
#include "manifest/pod_status.h"

#include <headroom/pod.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::observe {

// Of one file, and of one request: to read it takes many times as much memory, which is locked.
inline constexpr std::size_t kMaxManifestBytes = 1u << 20;
// Of one file; the others are counted in one more. An error that is longer is cut off.
inline constexpr std::size_t kMaxFileErrors = 100;
inline constexpr std::size_t kMaxErrorBytes = 512;
// Of all files together.
inline constexpr std::size_t kMaxErrors = 1'000;
inline constexpr std::size_t kMaxPods = 8'192;

struct ManifestOptions {
  // The kubelet calls a pod static when it runs it from a file, and never evicts one. Our directory
  // only describes pods that someone else runs: were they static for lying there, none could ever
  // be evicted. So a pod is static if its annotations say so (kubernetes.io/config.source other
  // than api, or kubernetes.io/config.mirror), or if the operator says so of the whole directory:
  // it is the kubelet's own staticPodPath.
  bool all_static = false;
  // The pods are those that a kubelet runs. A program wrote the files: an error in one is reported
  // as a problem of the kubelet's data, not as an operator's mistake.
  bool of_kubelet = false;
  std::size_t max_pods = SIZE_MAX;  // of one text: more of them is one complaint
};

// What could be read, beside what was wrong. A pod with any complaint of its own is left out, but
// for a kubelet's: it runs, and stays with all that could be read, if its name, uid and priority
// could. (Of a key that is there twice the first holds, and the pod stays.)
struct Manifests {
  std::vector<Pod> pods;
  config::Diagnostics diagnostics;
  config::Diagnostics kubelet_complaints;  // what would be errors in a file written by hand
  ContainerIds containers;                 // as far as statuses have them
  std::set<std::string> of_kubelet;        // uids of those a kubelet runs
};

// The content of one file, and where each pod stands in it. Pods whose status says that they ended
// are left out.
struct ParsedFile {
  struct ParsedPod {
    Pod pod;
    std::string file;
    int line = 0;
  };
  std::vector<ParsedPod> found;
  config::Diagnostics diagnostics;
  ContainerIds containers;
  bool of_kubelet = false;
  std::size_t bytes = 0;  // of its text
};
ParsedFile parse_manifest_file(const std::filesystem::path& file, const ManifestOptions& options);
// In order: of pods with one uid the first stays, and the second is complained of. At most kMaxPods
// and `max_errors`, and an error that says so.
Manifests merge_files(std::vector<const ParsedFile*> parsed_files,
                      std::size_t max_errors = kMaxErrors);
// One file: any number of documents, each a Pod, a PodList or a List of Pods. At most
// kMaxFileErrors.
Manifests parse_manifests(const std::string& text, const std::string& file,
                          ManifestOptions options = {});

// The uid of a pod whose manifest has none, from its namespace and name alone: the same in every
// run and on every node. It has the form of a UUID of version 8 (RFC 9562: vendor-specific). The
// pod's cgroup must be named by this uid, or the two are not joined. (The kubelet's own hash for
// static pods covers its host name and defaulted spec, which are unknown here; see
// kubernetes.io/config.hash.)
std::string derived_uid(std::string_view pod_namespace, std::string_view name);

}  // namespace headroom::observe
