// SPDX-License-Identifier: Apache-2.0
// Which cgroup of a pod is which of its containers.
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

// What a runtime says of a container by its id; null: nothing.
using IdentifyContainer = std::function<const ContainerIdentity*(std::string_view runtime_id)>;

// Container name → cgroup. By the runtime's names; else by the unit's name ("main.service",
// "web-main.service", "web.main.service"); else, if the pod has only one container, all of the
// pod's cgroups but its sandbox are that one. Cgroups that are not recognised are left out.
std::multimap<std::string, std::string> containers_of(const Pod& pod,
                                                      const observe::PodCgroup& cgroup,
                                                      const IdentifyContainer& identify);

// Which of the pod's containers the cgroup at `path`, directly below the pod's, is; null: none, or
// not recognised.
const Container* container_at(const Pod& pod, std::string_view path, report::ContainerNames& names);

// Init containers first, in order.
template <class Visit>
void for_each_container(const Pod& pod, Visit&& visit) {
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      visit(container);
}

}  // namespace headroom::daemon
