// SPDX-License-Identifier: Apache-2.0
// What a container runtime keeps of a container: a pod's author chooses its names and annotations.
#include "base/human_readable.h"
#include "fuzz.h"
#include "observe/pod/oci_bundle.h"

#include <string>

namespace {

void check(const std::optional<headroom::ContainerIdentity>& identity) {
  if (!identity) return;
  for (const std::string* name : {&identity->container, &identity->image, &identity->pod,
                                  &identity->pod_namespace, &identity->name})
    headroom::fuzz::promise(headroom::printable(*name) == *name, "a name is printable");
  headroom::fuzz::promise(!identity->sandbox || identity->container.empty(),
                          "a sandbox is no container of the pod");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(headroom::fuzz::text_of(bytes, size));
  check(headroom::observe::parse_oci_config(text));
  check(headroom::observe::parse_docker_config(text));
  return 0;
}
