// SPDX-License-Identifier: Apache-2.0
#include "support/story.h"

#include <cstring>

namespace headroom::test {
namespace {

hr_record record_holding(std::uint64_t id, Bytes working_set) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);  // all ones: unknown
  record.id = id;
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT;
  record.populated = 1;
  record.memory_usage = static_cast<std::uint64_t>(working_set.count);
  record.inactive_file = 0;
  return record;
}

}  // namespace

Threshold memory_below(Bytes value, Duration grace) {
  return Threshold{.signal = Signal::kMemoryAvailable,
                   .value = Quantity::of(value.count, Quantity::Format::kBinarySI),
                   .grace = grace,
                   .min_reclaim = std::nullopt};
}

std::size_t Story::pod(const std::string& name, Bytes working_set, Bytes request,
                       std::int32_t priority) {
  auto pod = std::make_shared<Pod>();
  pod->name = name;
  pod->uid = "uid-" + name;
  pod->priority = priority;
  records_.push_back(record_holding(next_id_, working_set));
  readings_.push_back(PodReading{.pod = std::move(pod),
                                 .cgroup = CgroupId{next_id_++},
                                 .record = nullptr,
                                 .memory_request = request,
                                 .critical = false});
  return readings_.size() - 1;
}

void Story::vanish(std::size_t pod) {
  records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(pod));
  readings_.erase(readings_.begin() + static_cast<std::ptrdiff_t>(pod));
}

Snapshot Story::snapshot(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups) {
  Snapshot snapshot;
  snapshot.at = at_ms(ms);
  if (available)
    of(snapshot.observations, Signal::kMemoryAvailable) =
        Observation{.available = available->count, .capacity = kCapacity, .at = snapshot.at};
  if (!with_cgroups) return snapshot;
  for (std::size_t i = 0; i < readings_.size(); ++i)
    readings_[i].record = records_[i].id == HR_UNKNOWN ? nullptr : &records_[i];
  snapshot.cgroups = records_;
  snapshot.pods = readings_;
  return snapshot;
}

const Verdict& Story::step(std::int64_t ms, std::optional<Bytes> available,
                           Outcome::Result result) {
  judge(policy, snapshot(ms, available), history, verdict);
  history = verdict.after;
  for (const Decision& decision : verdict.decisions)
    learn(Outcome{.decision = decision, .result = result, .error = 0, .at = at_ms(ms)}, history);
  return verdict;
}

std::vector<std::string> Story::decided() const {
  std::vector<std::string> lines;
  for (const Decision& decision : verdict.decisions)
    lines.push_back((decision.act == Act::kKill ? "kill " : "terminate ") + decision.pod->name);
  return lines;
}

}  // namespace headroom::test
