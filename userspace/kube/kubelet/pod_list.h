// SPDX-License-Identifier: Apache-2.0
// pod_files(): turns the response of the kubelet's /pods into the files that headroomd reads.
//
// A pod is reduced to the fields that headroomd uses: its file is read faster, contains no
// environment with secrets, and changes only when something relevant changed (a kubelet changes the
// status with every probe).
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::kube {

inline constexpr std::size_t kMaxPodFileBytes = 1u << 20;  // headroomd reads no larger manifest
inline constexpr std::size_t kMaxLabels = 256;             // labels of a pod; also annotations

struct PodFiles {
  std::map<std::string, std::string> pods;  // metadata.uid → a v1 Pod in JSON
  std::size_t ended = 0;                    // omitted: Succeeded or Failed, nothing of them runs
  std::size_t invalid = 0;                  // omitted: the uid cannot be a file's name
  // By namespace/name:
  std::vector<std::string> cut;        // some labels or annotations were dropped
  std::vector<std::string> too_large;  // omitted: headroomd would not read such a file
};

// Error if the response is not a complete PodList: the pods are then unknown, which is not the same
// as no pods.
Result<PodFiles> pod_files(std::string_view answer);

}  // namespace headroom::kube
