// SPDX-License-Identifier: Apache-2.0
#include "recording/tape.h"

#include "recording/shapes.h"

#include <iterator>
#include <utility>

namespace headroom::recording {
namespace {

// Of format 7, at the end of their frames: swap_aware and what is remembered of swap; with swap,
// the reading of it. A recording without them is of nodes that no decision depended on swap of.
// Of format 8, after these: what is remembered, and read, of kernel.memAvailable.
// Of format 9, after these: what evictions for cpu.pressure depend on, and its reading.
// Of format 10: frames of system use.
// Of format 11: at the end of a baseline, and after the reading of swap, the stalls of pods.
// Of format 16: frames of limit plans.
enum Kind : char {
  kBaseline = 'B',
  kChange = 'P',
  kTurn = 'T',
  kSystemUse = 'S',
  kLimitPlans = 'L',
  kEnd = 'E'
};

// An instant by itself, for those in the frame to be close to.
std::int64_t count_of(Instant at) {
  return at.time_since_epoch().count();
}

std::int64_t memory_error(const Observations& all) {
  const auto& memory = of(all, Signal::kMemoryAvailable);
  return memory ? memory->error : 0;
}

void read_memory_error(Reader& io, Observations& all) {
  std::int64_t error = 0;
  io(error);
  if (error < 0) io.fail();
  if (auto& memory = of(all, Signal::kMemoryAvailable)) memory->error = error;
}

void write_results(Writer& io, std::span<const Outcome> outcomes) {
  for (const Outcome& outcome : outcomes)
    io(outcome.result, outcome.error, outcome.at);
}

// The uses are those of the window that this turn's sweep ended, if it did.
void write_cpu(Writer& io, const Observation& pressure,
               const std::optional<ByCgroup<CpuUse>>& uses) {
  io(pressure, uses.has_value());
  if (!uses) return;
  io(std::vector<std::uint64_t>(uses->ids.begin(), uses->ids.end()));
  io(std::vector<CpuUse>(uses->values.begin(), uses->values.end()));
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
  system_.forget();
  frame(out, kBaseline, at, [&](Writer& io) {
    io(lost, policy, history, policy.swap_aware, history.swap);
    put_later_signals(io, history.last_sample, history.trends, history.reclaims);
    io(policy.cpu_eviction_period);
    put_cpu_history(io, history);
    put_pod_stalls(io, history.swap);
    put_page_tables(io, history);
  });
}

void TapeWriter::change(std::string& out, Instant at, const Policy& policy) {
  frame(out, kChange, at,
        [&](Writer& io) { io(policy, policy.swap_aware, policy.cpu_eviction_period); });
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
    const auto& cpu = of(snapshot.observations, Signal::kCpuPressure);
    const std::int64_t error = memory_error(snapshot.observations);
    if (!snapshot.swap && !of(snapshot.observations, Signal::kKernelMemAvailable) && !cpu && !error)
      return;
    io(snapshot.swap);
    if (snapshot.swap) put_pod_stalls(io, *snapshot.swap);
    put_later_signals(io, snapshot.observations);
    io(snapshot.page_tables, error);
    if (cpu) write_cpu(io, *cpu, snapshot.waits.cpu_use);
  });
}

void TapeWriter::system_use(std::string& out, const SystemUse& use) {
  frame(out, kSystemUse, use.at, [&](Writer& io) { system_.write(io, use); });
}

void TapeWriter::limit_plans(std::string& out, const LimitPlans& made) {
  frame(out, kLimitPlans, made.at, [&](Writer& io) { write(io, made); });
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
  if (at < Instant{} - kFarthest || at > Instant{} + kFarthest) return false;
  switch (kind) {
    case kBaseline: {
      intern_tables_ = InternTables{};
      pods_.forget();
      system_.forget();
      based_ = true;
      auto& baseline = frame_.emplace<Baseline>();
      baseline.at = at;
      io(baseline.lost, baseline.policy, baseline.history);
      if (!io.at_end()) io(baseline.policy.swap_aware, baseline.history.swap);
      History& history = baseline.history;
      if (!io.at_end())
        put_later_signals(io, history.last_sample, history.trends, history.reclaims);
      if (!io.at_end()) {
        io(baseline.policy.cpu_eviction_period);
        put_cpu_history(io, history);
      }
      if (!io.at_end()) put_pod_stalls(io, history.swap);
      if (format_ >= 13) put_page_tables(io, history);
      break;
    }
    case kChange: {
      auto& change = frame_.emplace<Change>();
      change.at = at;
      io(change.policy);
      if (!io.at_end()) io(change.policy.swap_aware);
      if (!io.at_end()) io(change.policy.cpu_eviction_period);
      break;
    }
    case kTurn:
      read_turn(io, at, frame_.emplace<Turn>());
      break;
    case kSystemUse: {
      auto& use = frame_.emplace<SystemUse>();
      use.at = at;
      system_.read(io, use);
      break;
    }
    case kLimitPlans: {
      auto& made = frame_.emplace<LimitPlans>();
      made.at = at;
      read(io, made);
      break;
    }
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
  if (turn.snapshot.swap && format_ >= 11) put_pod_stalls(io, *turn.snapshot.swap);
  put_later_signals(io, turn.snapshot.observations);
  if (format_ >= 13) io(turn.snapshot.page_tables);
  if (format_ >= 14) read_memory_error(io, turn.snapshot.observations);
  if (!io.at_end()) read_cpu(io, turn);
}

void TapeReader::read_cpu(Reader& io, Turn& turn) {
  io(of(turn.snapshot.observations, Signal::kCpuPressure).emplace());
  bool ended_window = false;
  io(ended_window);
  if (!ended_window) return;
  io(turn.cpu_use_of, turn.cpu_use);
  if (turn.cpu_use_of.size() != turn.cpu_use.size()) return io.fail();
  turn.snapshot.waits.cpu_use = ByCgroup<CpuUse>{.ids = turn.cpu_use_of, .values = turn.cpu_use};
}

}  // namespace headroom::recording
