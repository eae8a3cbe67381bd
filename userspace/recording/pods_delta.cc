// SPDX-License-Identifier: Apache-2.0
#include "recording/pods_delta.h"

#include "recording/record_delta.h"
#include "recording/shapes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headroom::recording {
namespace {

// What may be new of a pod. kDescription is of format 5: without it the description is complete.
// kPartLimits is of format 15: without it no part has a memory.max.
enum : std::uint64_t {
  kPodFields = 1,
  kRecord = 2,
  kDisk = 4,
  kParts = 8,
  kDescription = 16,
  kPartLimits = 32
};

template <class Io>
void pod_fields(Io& io, PodState& state) {
  io(state.pod, state.memory_request, state.critical, state.storage_request, state.storage_limit,
     state.unit);
}

bool same_pod_fields(const PodState& state, const PodReading& now) {
  return state.pod == now.pod && state.memory_request == now.memory_request &&
         state.critical == now.critical && state.storage_request == now.storage_request &&
         state.storage_limit == now.storage_limit && state.unit == now.unit;
}

bool same_disk(const PodState& state, const PodReading& now) {
  if (!state.disk || !now.disk) return !state.disk == !now.disk;
  return state.disk->at == now.disk->at;  // each measuring has its own time
}

bool same_parts(const PodState& state, const PodReading& now) {
  return state.parts.has_value() == (now.parts != nullptr) &&
         (!now.parts || *state.parts == *now.parts);
}

bool has_limits(const PodParts& parts) {
  return std::any_of(parts.parts.begin(), parts.parts.end(),
                     [](const PartReading& part) { return part.max.has_value(); });
}

template <class Io>
void part_limits(Io& io, PodState& state) {
  if (!state.parts) return;
  for (PartReading& part : state.parts->parts)
    io(part.max);
}

std::uint64_t changed_parts(const PodState& state, const PodReading& now) {
  std::uint64_t changed = 0;
  if (!same_pod_fields(state, now)) changed |= kPodFields;
  if (state.has_record != (now.record != nullptr) ||
      (now.record && std::memcmp(&state.record, now.record, sizeof(hr_record)) != 0))
    changed |= kRecord;
  if (!same_disk(state, now)) changed |= kDisk;
  if (!same_parts(state, now)) {
    changed |= kParts;
    if (now.parts && has_limits(*now.parts)) changed |= kPartLimits;
  }
  if (state.description != now.description) changed |= kDescription;
  return changed;
}

void write_pod_fields(Writer& io, PodState& state, const PodReading& now) {
  state.pod = now.pod;
  state.memory_request = now.memory_request;
  state.critical = now.critical;
  state.storage_request = now.storage_request;
  state.storage_limit = now.storage_limit;
  state.unit = now.unit;
  pod_fields(io, state);
}

void write_disk(Writer& io, PodState& state, const PodReading& now) {
  state.disk = now.disk ? std::make_shared<const DiskUsage>(*now.disk) : nullptr;
  io(state.disk != nullptr);
  if (state.disk) io(*state.disk);
}

void read_disk(Reader& io, PodState& state) {
  bool there = false;
  io(there);
  auto disk = there ? std::make_shared<DiskUsage>() : nullptr;
  if (disk) io(*disk);
  state.disk = std::move(disk);
}

PodReading reading_of(CgroupId cgroup, const PodState& state) {
  return PodReading{.pod = state.pod,
                    .cgroup = cgroup,
                    .record = state.has_record ? &state.record : nullptr,
                    .memory_request = state.memory_request,
                    .critical = state.critical,
                    .storage_request = state.storage_request,
                    .storage_limit = state.storage_limit,
                    .disk = state.disk.get(),
                    .unit = state.unit,
                    .parts = state.parts ? &*state.parts : nullptr,
                    .description = state.description};
}

}  // namespace

void PodsDelta::erase_missing() {
  std::erase_if(states_, [&](const auto& entry) { return entry.second.pass != pass_; });
}

void PodsDelta::write(Writer& io, std::span<const PodReading> pods) {
  ++pass_;
  io.number(pods.size());
  for (const PodReading& now : pods) {
    PodState& state = states_[now.cgroup];
    state.pass = pass_;
    const std::uint64_t changed = changed_parts(state, now);
    io(now.cgroup, changed);
    if (changed & kPodFields) write_pod_fields(io, state, now);
    if (changed & kRecord) {
      state.has_record = now.record != nullptr;
      io(state.has_record);
      if (now.record) write_record(io, state.record, *now.record);
    }
    if (changed & kDisk) write_disk(io, state, now);
    if (changed & kParts) {
      state.parts = now.parts ? std::optional(*now.parts) : std::nullopt;
      io(state.parts);
    }
    if (changed & kPartLimits) part_limits(io, state);
    if (changed & kDescription) {
      state.description = now.description;
      io(state.description);
    }
  }
  erase_missing();
}

std::span<const PodReading> PodsDelta::read(Reader& io) {
  ++pass_;
  readings_.clear();
  std::uint64_t count = 0;
  io.number(count);
  for (; count > 0 && io.good(); --count) {
    CgroupId cgroup;
    std::uint64_t changed = 0;
    io(cgroup, changed);
    PodState& state = states_[cgroup];
    // A pod is there once: reading it again would free what its first reading points to.
    if (state.pass == pass_) io.fail();
    state.pass = pass_;
    if (changed & kPodFields) pod_fields(io, state);
    if (changed & kRecord) {
      io(state.has_record);
      if (state.has_record) read_record(io, state.record);
    }
    if (changed & kDisk) read_disk(io, state);
    if (changed & kParts) io(state.parts);
    if (changed & kPartLimits) part_limits(io, state);
    if (changed & kDescription) io(state.description);
    if (!state.pod) io.fail();  // a reading belongs to a pod
    readings_.push_back(reading_of(cgroup, state));
  }
  erase_missing();
  return readings_;
}

}  // namespace headroom::recording
