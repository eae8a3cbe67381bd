// SPDX-License-Identifier: Apache-2.0
#include "support/story.h"

#include "recording/replayer.h"
#include "recording/shapes.h"

#include <cstring>

#include <gtest/gtest.h>

namespace headroom::test {
namespace {

hr_record record_holding(std::uint64_t id, Bytes working_set) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);  // all ones: unknown
  record.id = id;
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_PIDS;
  record.populated = 1;
  record.memory_usage = static_cast<std::uint64_t>(working_set.count);
  record.inactive_file = 0;
  record.swap_usage = 0;
  record.pids_current = 1;
  return record;
}

std::string_view verb(Act act) {
  switch (act) {
    case Act::kTerminate:
      return "terminate";
    case Act::kKill:
      return "kill";
    case Act::kPreStop:
      return "pre-stop";
    case Act::kRemove:
      return "remove";
    case Act::kReclaim:
      return "reclaim";
    case Act::kReclaimCache:
      return "take cache of";
    case Act::kLowerMemoryHigh:
      return "squeeze";
    case Act::kRaiseMemoryHigh:
      return "relax";
    case Act::kRestoreMemoryHigh:
      return "restore";
  }
  return "";
}

// To tell whether a test has changed them.
std::string bytes_of(const Policy& policy, const History& history) {
  std::string bytes;
  recording::InternTables intern_tables;
  recording::Writer(bytes, intern_tables, {})(policy, history);
  return bytes;
}

}  // namespace

Threshold memory_below(Bytes value, Duration grace) {
  return Threshold{.signal = Signal::kMemoryAvailable,
                   .value = Quantity::of(value.count, Quantity::Format::kBinarySI),
                   .grace = grace,
                   .min_reclaim = std::nullopt};
}

Threshold below(Signal signal, std::int64_t value, Duration grace) {
  return Threshold{.signal = signal,
                   .value = Quantity::of(value, Quantity::Format::kBinarySI),
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
  disks_.push_back(nullptr);
  parts_.push_back(nullptr);
  return readings_.size() - 1;
}

void Story::remove_pod(std::size_t pod) {
  records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(pod));
  readings_.erase(readings_.begin() + static_cast<std::ptrdiff_t>(pod));
  disks_.erase(disks_.begin() + static_cast<std::ptrdiff_t>(pod));
  parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(pod));
}

Snapshot Story::snapshot(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups) {
  Snapshot snapshot;
  snapshot.at = at_ms(ms);
  if (available)
    of(snapshot.observations, Signal::kMemoryAvailable) = Observation{.available = available->count,
                                                                      .capacity = kCapacity,
                                                                      .at = snapshot.at,
                                                                      .error = memory_error.count};
  snapshot.swap = swap;
  snapshot.page_tables = page_tables;
  if (swap) snapshot.swap->at = snapshot.swap->counted_at = snapshot.at;
  if (!with_cgroups) return snapshot;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    readings_[i].record = records_[i].id == HR_UNKNOWN ? nullptr : &records_[i];
    readings_[i].disk = disks_[i].get();
    readings_[i].parts = parts_[i].get();
  }
  snapshot.cgroups = records_;
  snapshot.pods = readings_;
  snapshot.waits.cpu_use = cpu_use;
  return snapshot;
}

// What a test has set by hand goes to the recording as a baseline.
void Story::sync_tape(Instant at) {
  if (state_at_last_turn_ == bytes_of(policy, history)) return;
  if (recorded_.empty()) recording::TapeWriter::header(recorded_, {});
  tape_.baseline(recorded_, at, policy, history, 0);
  ended_.clear();
}

std::string Story::recorded() {
  std::string whole = recorded_;
  recording::TapeWriter last = tape_;
  last.end(whole, history.last_sample[0].value_or(Instant{}), 0);
  return whole;
}

Story::~Story() {
  if (recorded_.empty()) return;
  auto tape = recording::TapeReader::open(recorded());
  const auto replayed = tape ? recording::replay(*tape) : tl::make_unexpected(tape.error());
  const bool same = replayed && replayed->identical() && !replayed->cut_short;
  EXPECT_TRUE(same) << "the story's replay differs from the story"
                    << (replayed ? "" : ": " + replayed.error().what);
}

const Verdict& Story::run_judge(const Snapshot& now, Outcome::Result result) {
  sync_tape(now.at);
  judge(policy, now, history, verdict);
  history = verdict.after;
  std::vector<Outcome> outcomes = std::exchange(ended_, {});
  for (const Decision& decision : verdict.decisions) {
    const bool lasting = decision.act == Act::kPreStop || decision.act == Act::kRemove ||
                         decision.act == Act::kReclaim || is_ladder(decision.act);
    const bool starts = lasting && result == Outcome::Result::kDone;
    if (starts) started_.push_back(decision);
    outcomes.push_back(Outcome{.decision = decision,
                               .result = starts ? Outcome::Result::kStarted : result,
                               .error = 0,
                               .at = now.at});
    record_outcome(outcomes.back(), history);
  }
  tape_.turn(recorded_, now, verdict, outcomes);
  state_at_last_turn_ = bytes_of(policy, history);
  return verdict;
}

const Verdict& Story::step(std::int64_t ms, std::optional<Bytes> available,
                           Outcome::Result result) {
  return run_judge(snapshot(ms, available), result);
}

const Verdict& Story::step(std::int64_t ms, std::initializer_list<Sample> samples,
                           Outcome::Result result) {
  Snapshot now = snapshot(ms, std::nullopt);
  now.images = images;
  for (const Sample& sample : samples)
    of(now.observations, sample.signal) =
        Observation{.available = sample.available, .capacity = sample.capacity, .at = now.at};
  return run_judge(now, result);
}

void Story::uses_disk(std::size_t pod, std::int64_t ms, Bytes volume, std::int64_t inodes) {
  disks_[pod] = std::make_shared<DiskUsage>();
  disks_[pod]->at = at_ms(ms);
  disks_[pod]->volumes = {
      {.name = "data", .usage = {volume, inodes}, .ranked = true, .counted = true}};
}

PodParts& Story::parts(std::size_t pod) {
  if (!parts_[pod]) parts_[pod] = std::make_shared<PodParts>();
  return *parts_[pod];
}

PartReading& Story::container(std::size_t pod, Bytes held, Bytes request) {
  return parts(pod).parts.emplace_back(PartReading{.cgroup = CgroupId{next_id_++},
                                                   .memory_request = request,
                                                   .usage = held,
                                                   .working_set = held,
                                                   .release = held});
}

void Story::processes_exit(std::size_t pod, std::int64_t ms) {
  const bool untouched = state_at_last_turn_ == bytes_of(policy, history);
  for (const Victim& victim : history.victims) {
    if (victim.cgroup != readings_[pod].cgroup || victim.part.unit != EvictionUnit::kProcess)
      continue;
    Outcome exit{.decision = {}, .result = Outcome::Result::kGone, .error = 0, .at = at_ms(ms)};
    exit.decision.pod = victim.pod;
    exit.decision.cgroup = victim.cgroup;
    exit.decision.part = victim.part;
    ended_.push_back(std::move(exit));
  }
  for (const Outcome& outcome : ended_)
    record_outcome(outcome, history);
  if (untouched) state_at_last_turn_ = bytes_of(policy, history);
}

void Story::ended(Act act, std::int64_t ms, int error) {
  const bool untouched = state_at_last_turn_ == bytes_of(policy, history);
  for (const Decision& decision : started_) {
    if (decision.act != act) continue;
    ended_.push_back(Outcome{
        .decision = decision, .result = Outcome::Result::kDone, .error = error, .at = at_ms(ms)});
    record_outcome(ended_.back(), history);
  }
  if (untouched) state_at_last_turn_ = bytes_of(policy, history);
  std::erase_if(started_, [&](const Decision& decision) { return decision.act == act; });
}

std::vector<std::string> Story::decided() const {
  std::vector<std::string> lines;
  for (const Decision& decision : verdict.decisions)
    lines.push_back(std::string(verb(decision.act)) +
                    (decision.pod ? " " + decision.pod->name : "") +
                    (decision.part.whole() ? "" : "'s " + std::string(name(decision.part.unit))));
  return lines;
}

}  // namespace headroom::test
