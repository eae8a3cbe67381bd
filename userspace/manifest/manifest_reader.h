// SPDX-License-Identifier: Apache-2.0
// Manifests: the v1 Pods a directory of YAML or JSON files describes.
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
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::observe {

// Of one file, and of one request: to read it takes many times as much memory, which is locked.
inline constexpr std::size_t kMaxManifestBytes = 1u << 20;

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
};
ParsedFile parse_manifest_file(const std::filesystem::path& file, const ManifestOptions& options);
// In order: of pods with one uid the first stays, and the second is complained of.
Manifests merge_files(std::vector<const ParsedFile*> parsed_files);
// By name; a directory that is not there has none.
std::vector<std::filesystem::path> manifest_files(const std::filesystem::path& directory,
                                                  config::Diagnostics& diagnostics);

// One file: any number of documents, each a Pod, a PodList or a List of Pods.
Manifests parse_manifests(const std::string& text, const std::string& file,
                          ManifestOptions options = {});

// *.yaml, *.yml and *.json of the directory, by name; hidden and backup files are passed over. A
// directory that is not there holds no pods. For a reload: good pods are kept whatever else is
// wrong.
Manifests read_manifests(const std::filesystem::path& directory, ManifestOptions options = {});

// The uid of a pod whose manifest has none, from its namespace and name alone: the same in every
// run and on every node. It has the form of a UUID of version 8 (RFC 9562: vendor-specific). The
// pod's cgroup must be named by this uid, or the two are not joined. (The kubelet's own hash for
// static pods covers its host name and defaulted spec, which are unknown here; see
// kubernetes.io/config.hash.)
std::string derived_uid(std::string_view pod_namespace, std::string_view name);

// ManifestCache: the manifests of some directories; a file is read again only when it changes.
//
// Parsing YAML takes a good part of a millisecond per pod, and a kubelet's pods change a few at a
// time. A directory or a file that users other than root can write is an error, and is not read.

struct ManifestSource {
  std::filesystem::path directory;
  ManifestOptions options;
};

class ManifestCache {
 public:
  // Reads the files that changed. If two places have the same pod, the first counts.
  Manifests read(std::span<const ManifestSource> places);

 private:
  // Whether a file is still the one that was read: writing a new file creates a new inode.
  struct FileVersion {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed = 0;  // st_ctim, in nanoseconds
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };
  struct CachedFile {
    FileVersion version;
    ParsedFile parsed_file;
    bool seen = false;
  };
  static FileVersion file_version(const std::filesystem::path& file);

  std::map<std::string, CachedFile> files_;  // by path
};

}  // namespace headroom::observe
