// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/taint_timers_file.h"

#include "daemon/state/eviction_fields.h"
#include "daemon/state/unversioned_state.h"

#include <algorithm>

namespace headroom::daemon {
namespace {

bool same(const TaintTimer& a, const TaintTimer& b) {
  return a.cgroup == b.cgroup && a.started == b.started && a.length == b.length;
}

}  // namespace

TaintTimersFile::TaintTimersFile(const std::filesystem::path& state_dir)
    : file_(state_dir / "taint-timers.json", &decode_unversioned) {}

Result<> TaintTimersFile::save(const std::vector<TaintTimer>& timers) {
  if (std::equal(timers.begin(), timers.end(), saved_.begin(), saved_.end(), same)) return {};
  if (auto written = file_.save(timers); !written) return written;
  saved_ = timers;
  return {};
}

Result<std::vector<TaintTimer>> TaintTimersFile::load() {
  auto timers = file_.load();
  if (timers) saved_ = *timers;
  return timers;
}

}  // namespace headroom::daemon
