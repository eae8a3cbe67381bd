// SPDX-License-Identifier: Apache-2.0
// IoFlush: brings io statistics up to date before a sweep, where nothing else does.
//
// Up to 6.15 one flush of the root covers every controller. Since 6.16 each controller has its own,
// no function of BPF's reaches io's, and the root's io.stat shows the disks' counters without
// flushing; but reading io.stat of a cgroup flushes all below it. So the children of the root are
// read, a handful of system calls for the whole tree.
#pragma once

#include "base/fd.h"

#include <headroom/abi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headroom::observe {

class IoFlush {
 public:
  // The cgroup2 mount, or the tree that is swept. Kept open.
  explicit IoFlush(Fd root) : root_(std::move(root)) {}

  // Reads io.stat of each known child of the root.
  void flush();
  // Learns the root's children from a sweep; looks into the directory only when they changed.
  void update_io_stats(std::span<const hr_record> records);
  // The last look into the directory succeeded: nothing is to be learnt while the tree is the same.
  bool up_to_date() const { return up_to_date_; }

 private:
  void open_io_stats(std::uint64_t signature);

  Fd root_;
  std::vector<Fd> io_stats_;     // of the children that have an io controller
  std::uint64_t signature_ = 0;  // of the children's ids
  bool up_to_date_ = false;
};

}  // namespace headroom::observe
