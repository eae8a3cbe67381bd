// SPDX-License-Identifier: Apache-2.0
// Answers of a kubelet, or of an impostor: files that headroomd's own reader takes, named
// by nothing but letters, digits and dashes.
#include "kube/kubelet/pod_list.h"

#include "fuzz.h"
#include "kube/kubelet/pod_directory.h"
#include "manifest/manifest_reader.h"

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text = fuzz::text_of(bytes, size);
  static_cast<void>(kube::configuration_from(text));
  const auto files = kube::pod_files(text);
  if (!files) return 0;
  for (const auto& [uid, pod] : files->pods) {
    fuzz::promise(uid.find_first_of("/.") == std::string::npos, "a uid names a file");
    static_cast<void>(observe::parse_manifests(pod, "fuzz.json"));
  }
  return 0;
}
