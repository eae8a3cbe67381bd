// SPDX-License-Identifier: Apache-2.0
// find_container(): the identity of a container, as its runtime recorded it.
//
// A cgroup named cri-containerd-<id>.scope contains only an id. containerd and CRI-O keep the OCI
// configuration of running containers, whose annotations name the pod and the container; docker
// keeps a description of its own.
#pragma once

#include <headroom/container.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::observe {

// Looks where runtimes keep the container with this id, below `root`. Nothing: none of them has it,
// or what it has cannot be understood.
std::optional<ContainerIdentity> find_container(std::string_view id,
                                                const std::filesystem::path& root = "/");

// What is in such a file: of containerd and CRI-O the OCI configuration, of docker its own
// description. Nothing: it is not a JSON object. Names are printable; missing ones are empty.
std::optional<ContainerIdentity> parse_oci_config(const std::string& text);
std::optional<ContainerIdentity> parse_docker_config(const std::string& text);

}  // namespace headroom::observe
