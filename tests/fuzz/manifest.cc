// SPDX-License-Identifier: Apache-2.0
// v1 Pod manifests of any origin.
#include "fuzz.h"
#include "manifest/manifest_reader.h"

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const auto manifests =
      observe::parse_manifests(std::string(fuzz::text_of(bytes, size)), "fuzz.yaml");
  for (const Pod& pod : manifests.pods) {
    fuzz::promise(!pod.name.empty(), "a pod has a name");
    fuzz::promise(!pod.uid.empty(), "and a uid");
  }
  return 0;
}
