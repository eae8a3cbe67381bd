// SPDX-License-Identifier: Apache-2.0
// The workers of headroom-kube. Each runs on its own thread, blocks, and returns when a stop is
// requested.
#pragma once

#include "config/config.h"
#include "kube/health_file.h"

#include <filesystem>
#include <stop_token>

namespace headroom::kube {

// Input: pods and configuration, from the kubelet to the files that headroomd reads. Runs while
// headroom.kubernetes.kubelet.url is set.
void sync_from_kubelet(const config::Config& config, HealthFile& health_file,
                       const std::stop_token& stop,
                       const std::filesystem::path& cgroup_root = "/sys/fs/cgroup");

// Output: evictions and the node's conditions, from headroomd's files to the API server. Runs while
// headroom.kubernetes.api enables any of it.
void sync_to_api_server(const config::Config& config, HealthFile& health_file,
                        const std::stop_token& stop);

// Advice to Kubernetes' scheduler: soft taints and conditions of the node, by headroomd's readings.
// Runs while headroom.kubernetes.scheduling enables any of it, or while the state file exists: then
// it removes what an earlier run left, and returns.
void sync_scheduling(const config::Config& config, HealthFile& health_file,
                     const std::stop_token& stop);
// Exists while something of headroom's may be on the Node object for the scheduler.
std::filesystem::path scheduling_state_file(const config::KubernetesConfig& config);

// The extender of kube-scheduler, until stopped. False: it cannot serve, which is logged.
bool run_extender(const config::Config& config, const std::stop_token& stop);

// Metrics: those of headroomd over HTTPS, to clients that the API server allows them. Runs while
// headroom.kubernetes.metrics.listen is set.
void serve_metrics(const config::Config& config, HealthFile& health_file,
                   const std::stop_token& stop);

}  // namespace headroom::kube
