// SPDX-License-Identifier: Apache-2.0
// ContainerIdentity: namespace, pod and container name as the runtime reports them; "" if unknown.
#pragma once

#include <string>

namespace headroom {

struct ContainerIdentity {
  std::string container = {};  // the container's name in the pod
  std::string name = {};       // docker's own name for it
  std::string image = {};
  std::string pod = {};
  std::string pod_namespace = {};
  bool sandbox = false;  // the pod's pause container
};

}  // namespace headroom
