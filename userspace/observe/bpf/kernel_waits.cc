// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/kernel_waits.h"

namespace headroom::observe {
namespace {

template <class Value>
void read_cgroups(WaitWatch<Value>& watch, std::optional<ByCgroup<Value>>& into,
                  std::uint64_t& failed) {
  if (auto read = watch.read())
    into = *read;
  else
    ++failed;
}

}  // namespace

Waits KernelWaits::read(SnapshotScope depth) {
  Waits waits;
  if (stalls_) {
    waits.node_stalls = &stalls_->node();
    if (depth != SnapshotScope::kNode) read_cgroups(*stalls_, waits.stalls, failed_);
  }
  if (throttles_) {
    waits.node_throttles = &throttles_->node();
    if (depth != SnapshotScope::kNode) read_cgroups(*throttles_, waits.throttles, failed_);
  }
  return waits;
}

}  // namespace headroom::observe
