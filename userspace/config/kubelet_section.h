// SPDX-License-Identifier: Apache-2.0
// The KubeletConfiguration's own keys: those we heed are read, the others are let be.
#pragma once

#include "config/config.h"
#include "config/eviction_told.h"
#include "config/section.h"

namespace headroom::config {

// `document` is the whole file; keys the kubelet has not got (but for `headroom`) are complained
// of.
void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionTold& eviction);

// Where the kubelet puts its pods, below the cgroup root: ("systemd", "/kubelet") is
// "kubelet.slice/kubelet-kubepods.slice".
std::string pods_cgroup(bool systemd_driver, std::string_view cgroup_root);

}  // namespace headroom::config
