// SPDX-License-Identifier: Apache-2.0
// Names that others choose: of cgroups, mounts, hosts and processes.
#include "base/human_readable.h"
#include "base/mountinfo.h"
#include "fuzz.h"
#include "observe/pod/pod_cgroup_path.h"
#include "report/page/page_router.h"

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text = fuzz::text_of(bytes, size);
  const std::string clean = printable(text);
  fuzz::promise(clean.size() == size, "a printable text has the same length");
  fuzz::promise(printable(clean) == clean, "and stays as it is");
  for (const char* root : {"kubepods.slice", "kubepods", "kubelet.slice/kubelet-kubepods.slice"})
    if (const auto place = observe::PodCgroupParser(root).place(text))
      fuzz::promise(place->uid.find('/') == std::string::npos, "a uid is one part of a path");
  for (const Mount& mount : parse_mounts(text))
    fuzz::promise(mount.point.size() <= size, "a mount point is a part of its line");
  if (report::is_allowed_host(text, {"node-1"}))
    fuzz::promise(text.find("evil") == std::string_view::npos, "a foreign host is refused");
  return 0;
}
