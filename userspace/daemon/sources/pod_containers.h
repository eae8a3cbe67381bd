// SPDX-License-Identifier: Apache-2.0
// Assigns the cgroups of a pod to its containers.
#pragma once

#include "observe/pod/pod_cgroup_path.h"
#include "report/view/node_view.h"

#include <headroom/container.h>
#include <headroom/pod.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace headroom::daemon {

// The identity of a container by its id, from a runtime; null: unknown.
using IdentifyContainer = std::function<const ContainerIdentity*(std::string_view runtime_id)>;

// Container name → cgroup. By the runtime's names; else by the unit's name ("main.service",
// "web-main.service", "web.main.service"); else, if the pod has only one container, all of the
// pod's cgroups but its sandbox are that one. Cgroups that are not recognised are left out.
std::multimap<std::string, std::string> containers_of(const Pod& pod,
                                                      const observe::PodCgroup& cgroup,
                                                      const IdentifyContainer& identify);

// The pod's container whose cgroup is at `path`, directly below the pod's; null: none, or not
// recognised.
const Container* container_at(const Pod& pod, std::string_view path, report::ContainerNames& names);

// Init containers first, in order.
template <class Visit>
void for_each_container(const Pod& pod, Visit&& visit) {
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      visit(container);
}

}  // namespace headroom::daemon
