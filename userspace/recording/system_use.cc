// SPDX-License-Identifier: Apache-2.0
#include "recording/system_use.h"

#include "recording/record_delta.h"
#include "recording/shapes.h"

namespace headroom::recording {
void SystemUseDelta::erase_missing() {
  std::erase_if(states_, [&](const auto& entry) { return entry.second.pass != pass_; });
}

void SystemUseDelta::write(Writer& io, const SystemUse& use) {
  ++pass_;
  const bool reserves_changed = reserves_ != use.reserves;
  io(use.unaccounted_memory, reserves_changed);
  if (reserves_changed) io(use.reserves);
  reserves_ = use.reserves;
  io.number(use.cgroups.size());
  for (const SystemCgroup& now : use.cgroups) {
    State& state = states_[now.id];
    const bool changed = state.pass == 0 || state.cgroup.role != now.role;
    state.pass = pass_;
    io(now.id, changed);
    if (changed) io(now.path, now.role);
    state.cgroup.role = now.role;
    write_record(io, state.cgroup.record, now.record);
  }
  erase_missing();
}

void SystemUseDelta::read(Reader& io, SystemUse& use) {
  ++pass_;
  bool reserves_changed = false;
  io(use.unaccounted_memory, reserves_changed);
  if (reserves_changed) io(reserves_.emplace());
  if (!reserves_) return io.fail();
  use.reserves = *reserves_;
  use.cgroups.clear();
  std::uint64_t count = 0;
  io.number(count);
  for (; count > 0 && io.good(); --count) {
    CgroupId id;
    bool changed = false;
    io(id, changed);
    State& state = states_[id];
    if (state.pass == 0 && !changed) return io.fail();
    state.pass = pass_;
    state.cgroup.id = id;
    if (changed) io(state.cgroup.path, state.cgroup.role);
    read_record(io, state.cgroup.record);
    use.cgroups.push_back(state.cgroup);
  }
  erase_missing();
}

}  // namespace headroom::recording
