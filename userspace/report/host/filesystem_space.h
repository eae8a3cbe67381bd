// SPDX-License-Identifier: Apache-2.0
// The space of the node's filesystems, with what each keeps for root: evictions do not need that,
// readers of a kubelet's metrics do.
#pragma once

#include <headroom/signal.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::report {

struct FilesystemSpace {
  std::string device;                    // as it is mounted: "/dev/vda1"
  std::uint64_t capacity = 0, used = 0;  // bytes
  // Absent: the filesystem makes inodes as they are needed.
  std::optional<std::uint64_t> inodes, inodes_free;
};

// The source of the mount that has `path`; "": none has it.
std::string device_of(const std::filesystem::path& path, std::string_view mountinfo);

class FilesystemSpaces {
 public:
  // A filesystem, and the signal of its bytes.
  struct Place {
    Signal signal = Signal::kNodeFsAvailable;
    std::filesystem::path path;
  };

  explicit FilesystemSpaces(std::vector<Place> places) : places_(std::move(places)) {}

  // Absent: no such filesystem, or its signal is unknown. Then nothing is asked of it: a
  // filesystem that hangs does not answer.
  std::optional<FilesystemSpace> of(Signal signal, const Observations& observations) const;
  // Each device once.
  std::vector<FilesystemSpace> all(const Observations& observations) const;

 private:
  std::vector<Place> places_;
};

}  // namespace headroom::report
