// SPDX-License-Identifier: Apache-2.0
// PodStatus: the status of a v1 Pod as a kubelet fills it in: its resources and its containers.
#pragma once

#include "config/yaml/section.h"

#include <headroom/container.h>
#include <headroom/pod.h>

#include <map>
#include <string>

namespace headroom::observe {

// Containers by their runtime's id (64 hexadecimal digits).
using ContainerIds = std::map<std::string, ContainerIdentity, std::less<>>;

// All of it has ended (Succeeded, Failed): nothing of it runs, and its cgroup is about to go.
bool has_ended(const config::Section& object);

// qosClass; what is granted of a resize in place: into the pod.
void read_status(const config::Section& object, Pod& pod);

// The pod's containers that have run, each with its latest instance.
ContainerIds container_ids(const config::Section& object, const Pod& pod);

}  // namespace headroom::observe
