// SPDX-License-Identifier: Apache-2.0
// PodList: the answer of the kubelet's /pods, as the files that headroomd reads.
//
// A pod is reduced to what headroomd uses: it is read faster, holds no environment with its
// secrets, and its file changes only when something relevant did (a kubelet's statuses change with
// every probe).
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::kube {

inline constexpr std::size_t kMaxPodFileBytes = 1u << 20;  // headroomd reads no larger manifest
inline constexpr std::size_t kMaxLabels = 256;             // of a pod; and as many annotations

struct PodFiles {
  std::map<std::string, std::string> pods;  // metadata.uid → a v1 Pod in JSON
  std::size_t ended = 0;                    // Succeeded or Failed: left out, nothing of them runs
  std::size_t invalid = 0;                  // without a uid that could be a file's name: left out
  // By namespace/name:
  std::vector<std::string> cut;        // some labels or annotations were dropped
  std::vector<std::string> too_large;  // left out: headroomd would not read such a file
};

// An error where it is no PodList, or half of one: then nothing is known, rather than that there
// are no pods.
Result<PodFiles> pod_files(std::string_view answer);

}  // namespace headroom::kube
