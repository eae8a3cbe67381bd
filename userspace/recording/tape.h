// SPDX-License-Identifier: Apache-2.0
// Tape: a recording of everything that the judge was given and what it answered, so that the same
// judge can be run again.
//
// A magic line, a header, then frames: a kind, a length and the bytes (wire.h, shapes.h). The first
// frame is a baseline: the whole policy and history. A turn is written as what changed since the
// one before; after lost turns another baseline follows, and nothing before it is needed. The last
// frame says that the recording ended on purpose.
#pragma once

#include "recording/limit_plans.h"
#include "recording/pods_delta.h"
#include "recording/system_use.h"
#include "recording/wire.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/result.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headroom::recording {

inline constexpr std::string_view kMagic = "headroom recording\n";
// Goes up by one whenever a shape changes. Recordings from kOldestFormat on are read: what was
// added since then is written so that its absence can be seen. Others are refused.
inline constexpr std::uint64_t kFormat = 16, kOldestFormat = 4;

struct Header {
  std::string version;           // of the headroomd that wrote it
  std::int64_t wall_offset = 0;  // nanoseconds: wall time less CLOCK_BOOTTIME
};

// Policy and history as of an instant.
struct Baseline {
  Instant at;
  std::uint64_t lost = 0;  // turns before it that are not in the recording
  Policy policy;
  History history;
};

// Another policy from here on.
struct Change {
  Instant at;
  Policy policy;
};

// One turn, whole: the ends of former acts, the snapshot that was judged, what was decided on it
// and what came of it.
struct Turn {
  Snapshot snapshot;  // its spans are good until the next frame is read
  std::vector<Outcome> ended;
  std::vector<Decision> decisions;
  std::vector<Outcome> outcomes;  // of `decisions`, in their order
  std::vector<EvictionEnd> eviction_ends;
  // Of snapshot.waits.cpu_use, which refers to them.
  std::vector<std::uint64_t> cpu_use_of;
  std::vector<CpuUse> cpu_use;
};

struct End {
  Instant at;
  std::uint64_t lost = 0;  // turns after the last that is in it
};

using Frame = std::variant<Baseline, Change, Turn, SystemUse, LimitPlans, End>;

class TapeWriter {
 public:
  static void header(std::string& out, const Header& header);

  // Each appends one frame. A frame that does not get into the file is followed by a baseline.
  void baseline(std::string& out, Instant at, const Policy& policy, const History& history,
                std::uint64_t lost);
  void change(std::string& out, Instant at, const Policy& policy);
  // `outcomes`: the ends of earlier actions first, then those of the verdict's decisions.
  void turn(std::string& out, const Snapshot& snapshot, const Verdict& verdict,
            std::span<const Outcome> outcomes);
  // Of the sweep of the turn before.
  void system_use(std::string& out, const SystemUse& use);
  void limit_plans(std::string& out, const LimitPlans& made);
  void end(std::string& out, Instant at, std::uint64_t lost);

 private:
  template <class Body>
  void frame(std::string& out, char kind, Instant at, Body&& body);

  InternTables intern_tables_;
  PodsDelta pods_;
  SystemUseDelta system_;
  std::string payload_;
};

class TapeReader {
 public:
  // Errors: not a recording, or of another format.
  static Result<TapeReader> open(std::string bytes);

  const Header& header() const { return header_; }
  // Null: no more. An error: a frame that makes no sense.
  Result<const Frame*> next();
  // The recording stops in the middle of a frame, or without its end.
  bool cut_short() const { return cut_short_; }

 private:
  explicit TapeReader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool read_header();
  bool decode(char kind, std::string_view payload);
  void read_turn(Reader& io, Instant at, Turn& turn);
  static void read_cpu(Reader& io, Turn& turn);

  std::string bytes_;
  std::size_t place_ = 0;
  std::uint64_t format_ = kFormat;
  Header header_;
  InternTables intern_tables_;
  PodsDelta pods_;
  SystemUseDelta system_;
  Frame frame_;
  bool based_ = false;  // a baseline was read
  bool ended_ = false;
  bool cut_short_ = false;
};

}  // namespace headroom::recording
