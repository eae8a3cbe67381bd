// SPDX-License-Identifier: Apache-2.0
// The names a KubeletConfiguration may hold at its top level.
//
// A kubelet's own file must work here unchanged, and a mistyped key must not be ignored: both need
// the whole list, not only the keys that mean something to us.
#pragma once

#include <span>
#include <string_view>

namespace headroom::config {

// Of kubelet.config.k8s.io/v1beta1, every release up to 1.37; sorted.
std::span<const std::string_view> kubelet_keys();

bool is_kubelet_key(std::string_view key);

// A key of the kubelet that concerns the node's resources, but that headroom does not implement.
struct IgnoredKubeletKey {
  std::string_view key;
  std::string_view consequence;  // on a host without a kubelet
};
std::span<const IgnoredKubeletKey> ignored_kubelet_keys();

}  // namespace headroom::config
