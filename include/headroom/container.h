// SPDX-License-Identifier: Apache-2.0
// ContainerIdentity: who a container is, as its runtime tells. What is not told is "".
#pragma once

#include <string>

namespace headroom {

struct ContainerIdentity {
  std::string container = {};  // its name within the pod
  std::string name = {};       // docker's own name for it
  std::string image = {};
  std::string pod = {};
  std::string pod_namespace = {};
  bool sandbox = false;  // the pod's pause container
};

}  // namespace headroom
