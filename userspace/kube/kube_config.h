// SPDX-License-Identifier: Apache-2.0
// headroom-kube's configuration: headroomd's own, without what headroom-kube itself wrote for it;
// and what a pod of a cluster finds of its API server.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/load/load.h"

#include <filesystem>
#include <functional>
#include <string>

namespace headroom::kube {

// What headroom-kube finds without configuration, in a pod or on the host: the service account, the
// API server's address, the node's name.

// Returns the value of an environment variable; null if it is unset.
using Environment = std::function<const char*(const char*)>;

inline constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

// headroom.nodeName or --hostname-override, else the environment variable NODE_NAME (a DaemonSet
// sets it from spec.nodeName), else the host's name.
std::string node_name_of(const config::Config& config, const Environment& environment);

// Fills in what is unset: "{nodeName}" in url and tlsServerName; over https, the service account's
// token and CA, if they exist and nothing else is configured.
config::ServerConfig complete_server(
    config::ServerConfig server, const std::string& node_name,
    const std::filesystem::path& service_account = kServiceAccount);

// The API server with its url. The url is empty if the address is unknown.
config::ServerConfig api_server(const config::Config& config, const Environment& environment,
                                const std::filesystem::path& service_account = kServiceAccount);

// The kubelet's configuration that headroom-kube wrote is not read: an error in it must not prevent
// the next query.
config::LoadResult load_config(const config::CommandLine& line);

// What is in force after SIGHUP. A configuration with an error changes nothing, and a key that
// needs a restart of headroomd keeps its value, so that both programs use the same files. Errors,
// warnings and what waits for a restart are logged.
config::Config reload_config(const config::CommandLine& line, config::Config running);

}  // namespace headroom::kube
