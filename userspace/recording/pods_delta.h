// SPDX-License-Identifier: Apache-2.0
// PodsDelta: the pods of a sweep, written as what changed since the sweep before.
//
// Two sweeps of a thousand pods a few milliseconds apart differ in a handful of numbers: each
// record is written as a mask of the fields that changed, and their differences.
#pragma once

#include "recording/wire.h"

#include <headroom/snapshot.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headroom::recording {

// What is remembered of a pod, and everything that is written of it.
struct PodState {
  std::shared_ptr<const Pod> pod;
  Bytes memory_request;
  bool critical = false;
  Bytes storage_request;
  std::optional<Bytes> storage_limit;
  bool has_record = false;
  hr_record record{};
  std::shared_ptr<const DiskUsage> disk;
  std::optional<EvictionUnit> unit;
  std::optional<PodParts> parts;
  PodDescription description = PodDescription::kComplete;
  std::uint64_t pass = 0;  // the last it was seen in
};

class PodsDelta {
 public:
  void forget() { states_.clear(); }

  void write(Writer& io, std::span<const PodReading> pods);
  // What write() was given, in the same order; good until the next read().
  std::span<const PodReading> read(Reader& io);

 private:
  void erase_missing();

  std::unordered_map<CgroupId, PodState> states_;
  std::uint64_t pass_ = 0;
  std::vector<PodReading> readings_;
};

}  // namespace headroom::recording
