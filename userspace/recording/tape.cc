// SPDX-License-Identifier: Apache-2.0
#include "recording/tape.h"

#include "recording/shapes.h"

#include <headroom/cgroup_record.h>

#include <iterator>
#include <utility>

namespace headroom::recording {
namespace {

// What may be new of a pod. kDescription is of format 5: without it the description is complete.
enum : std::uint64_t { kPodFields = 1, kRecord = 2, kDisk = 4, kParts = 8, kDescription = 16 };

// --- records: every 64-bit field, then the two halves of the word that holds flags ---------------

constexpr std::size_t kWords = sizeof(hr_record) / sizeof(std::uint64_t);
static_assert(kWords <= 64, "a record's changes no longer fit in one mask");

std::uint64_t word(const hr_record& record, std::size_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + i * sizeof value, sizeof value);
  return value;
}
void set_word(hr_record& record, std::size_t i, std::uint64_t value) {
  std::memcpy(reinterpret_cast<char*>(&record) + i * sizeof value, &value, sizeof value);
}

std::uint64_t changes(const hr_record& from, const hr_record& to) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kWords; ++i)
    if (word(from, i) != word(to, i)) mask |= std::uint64_t{1} << i;
  return mask;
}

void write_record(Writer& io, hr_record& known, const hr_record& now) {
  const std::uint64_t mask = changes(known, now);
  io(mask);
  for (std::size_t i = 0; i < kWords; ++i)
    if (mask >> i & 1) io(static_cast<std::int64_t>(word(now, i) - word(known, i)));
  known = now;
}

void read_record(Reader& io, hr_record& known) {
  std::uint64_t mask = 0;
  io(mask);
  for (std::size_t i = 0; i < kWords && io.good(); ++i) {
    if (!(mask >> i & 1)) continue;
    std::int64_t by = 0;
    io(by);
    set_word(known, i, word(known, i) + static_cast<std::uint64_t>(by));
  }
}

// --- the rest
// -------------------------------------------------------------------------------------

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

std::uint64_t changed_parts(const PodState& state, const PodReading& now) {
  std::uint64_t changed = 0;
  if (!same_pod_fields(state, now)) changed |= kPodFields;
  if (state.has_record != (now.record != nullptr) ||
      (now.record && std::memcmp(&state.record, now.record, sizeof(hr_record)) != 0))
    changed |= kRecord;
  if (!same_disk(state, now)) changed |= kDisk;
  if (!same_parts(state, now)) changed |= kParts;
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
    state.pass = pass_;
    if (changed & kPodFields) pod_fields(io, state);
    if (changed & kRecord) {
      io(state.has_record);
      if (state.has_record) read_record(io, state.record);
    }
    if (changed & kDisk) read_disk(io, state);
    if (changed & kParts) io(state.parts);
    if (changed & kDescription) io(state.description);
    if (!state.pod) io.fail();  // a reading belongs to a pod
    readings_.push_back(reading_of(cgroup, state));
  }
  erase_missing();
  return readings_;
}

namespace {

// Of format 7, at the end of their frames: swap_aware and what is remembered of swap; with swap,
// the reading of it. A recording without them is of nodes that no decision depended on swap of.
// Of format 8, after these: what is remembered, and read, of kernel.memAvailable.
enum Kind : char { kBaseline = 'B', kChange = 'P', kTurn = 'T', kEnd = 'E' };

// An instant by itself, for those in the frame to be close to.
std::int64_t count_of(Instant at) {
  return at.time_since_epoch().count();
}

void write_results(Writer& io, std::span<const Outcome> outcomes) {
  for (const Outcome& outcome : outcomes)
    io(outcome.result, outcome.error, outcome.at);
}

// The decision of an outcome is the one that was acted on.
void read_results(Reader& io, Turn& turn) {
  turn.outcomes.clear();
  for (const Decision& decision : turn.decisions) {
    Outcome& outcome = turn.outcomes.emplace_back();
    outcome.decision = decision;
    io(outcome.result, outcome.error, outcome.at);
  }
}

}  // namespace

// --- writing
// --------------------------------------------------------------------------------------

void TapeWriter::header(std::string& out, const Header& header) {
  out += kMagic;
  InternTables none;
  Writer io(out, none, {});
  io(kFormat, header.version, header.wall_offset);
}

template <class Body>
void TapeWriter::frame(std::string& out, char kind, Instant at, Body&& body) {
  payload_.clear();
  Writer io(payload_, intern_tables_, at);
  io(count_of(at));
  body(io);
  out.push_back(kind);
  Writer(out, intern_tables_, at).number(payload_.size());
  out += payload_;
}

void TapeWriter::baseline(std::string& out, Instant at, const Policy& policy,
                          const History& history, std::uint64_t lost) {
  intern_tables_ = InternTables{};
  pods_.forget();
  frame(out, kBaseline, at, [&](Writer& io) {
    io(lost, policy, history, policy.swap_aware, history.swap);
    put_later_signals(io, history.last_sample, history.trends, history.reclaims);
  });
}

void TapeWriter::change(std::string& out, Instant at, const Policy& policy) {
  frame(out, kChange, at, [&](Writer& io) { io(policy, policy.swap_aware); });
}

void TapeWriter::turn(std::string& out, const Snapshot& snapshot, const Verdict& verdict,
                      std::span<const Outcome> outcomes) {
  const std::size_t ended = outcomes.size() - std::min(outcomes.size(), verdict.decisions.size());
  frame(out, kTurn, snapshot.at, [&](Writer& io) {
    put_first_signals(io, snapshot.observations);
    io(snapshot.images, snapshot.cgroups.has_value(), snapshot.cgroups_changed);
    if (snapshot.cgroups) pods_.write(io, snapshot.pods);
    io.number(ended);
    for (const Outcome& outcome : outcomes.first(ended))
      io(outcome);
    io(verdict.decisions);
    write_results(io, outcomes.subspan(ended));
    io(verdict.eviction_ends);
    if (!snapshot.swap && !of(snapshot.observations, Signal::kKernelMemAvailable)) return;
    io(snapshot.swap);
    put_later_signals(io, snapshot.observations);
  });
}

void TapeWriter::end(std::string& out, Instant at, std::uint64_t lost) {
  frame(out, kEnd, at, [&](Writer& io) { io(lost); });
}

// --- reading
// --------------------------------------------------------------------------------------

Result<TapeReader> TapeReader::open(std::string bytes) {
  TapeReader reader(std::move(bytes));
  if (!std::string_view(reader.bytes_).starts_with(kMagic)) return failure("not a recording");
  if (!reader.read_header())
    return failure("a recording of another format: replay it with the version that made it");
  return reader;
}

bool TapeReader::read_header() {
  // Its length is not stored: the frames begin after what it leaves.
  InternTables none;
  const std::string_view rest = std::string_view(bytes_).substr(kMagic.size());
  Reader io(rest, none, {});
  std::uint64_t format = 0;
  io(format);
  if (!io.good() || format < kOldestFormat || format > kFormat) return false;
  format_ = format;
  io(header_.version, header_.wall_offset);
  place_ = bytes_.size() - io.left();
  return io.good();
}

Result<const Frame*> TapeReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(place_);
  if (rest.empty() || ended_) {
    cut_short_ = !ended_;
    return nullptr;
  }
  Reader io(rest.substr(1), intern_tables_, {});
  std::uint64_t size = 0;
  io.number(size);
  if (!io.good() || size > io.left()) {
    cut_short_ = true;
    return nullptr;
  }
  const std::size_t begin = bytes_.size() - io.left();
  place_ = begin + size;
  if (!decode(rest.front(), std::string_view(bytes_).substr(begin, size)))
    return failure("the recording is damaged at byte " + std::to_string(begin));
  return &frame_;
}

bool TapeReader::decode(char kind, std::string_view payload) {
  std::int64_t count = 0;
  Reader start(payload, intern_tables_, {});
  start(count);
  const Instant at{Duration(count)};
  Reader io(payload.substr(payload.size() - start.left()), intern_tables_, at);
  if (!start.good() || (kind != kBaseline && !based_)) return false;
  switch (kind) {
    case kBaseline: {
      intern_tables_ = InternTables{};
      pods_.forget();
      based_ = true;
      auto& baseline = frame_.emplace<Baseline>();
      baseline.at = at;
      io(baseline.lost, baseline.policy, baseline.history);
      if (!io.at_end()) io(baseline.policy.swap_aware, baseline.history.swap);
      History& history = baseline.history;
      if (!io.at_end())
        put_later_signals(io, history.last_sample, history.trends, history.reclaims);
      break;
    }
    case kChange: {
      auto& change = frame_.emplace<Change>();
      change.at = at;
      io(change.policy);
      if (!io.at_end()) io(change.policy.swap_aware);
      break;
    }
    case kTurn:
      read_turn(io, at, frame_.emplace<Turn>());
      break;
    case kEnd: {
      auto& end = frame_.emplace<End>();
      end.at = at;
      io(end.lost);
      ended_ = true;
      break;
    }
    default:
      return false;
  }
  return io.good() && io.at_end();
}

void TapeReader::read_turn(Reader& io, Instant at, Turn& turn) {
  bool with_cgroups = false;
  turn.snapshot.at = at;
  put_first_signals(io, turn.snapshot.observations);
  io(turn.snapshot.images, with_cgroups, turn.snapshot.cgroups_changed);
  if (with_cgroups) {
    // The judge asks whether there was a pass, and of what was in it for the pods alone.
    turn.snapshot.cgroups.emplace();
    turn.snapshot.pods = pods_.read(io);
  }
  io(turn.ended, turn.decisions);
  read_results(io, turn);
  io(turn.eviction_ends);
  if (io.at_end()) return;
  if (format_ < 8) return io(turn.snapshot.swap.emplace());
  io(turn.snapshot.swap);
  put_later_signals(io, turn.snapshot.observations);
}

}  // namespace headroom::recording
