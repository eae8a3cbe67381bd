// SPDX-License-Identifier: Apache-2.0
// A recording that another user made, replayed: an error or an answer, within bounds of memory and
// time, and the same answer each time.
#include "fuzz.h"
#include "recording/replayer.h"

#include <string>

namespace {

// A recording that has begun: its header and the policy, so that the bytes that follow are frames.
std::string begun() {
  using namespace headroom;
  std::string bytes;
  recording::TapeWriter writer;
  recording::TapeWriter::header(bytes, {"fuzz", 0});
  const Instant start{std::chrono::seconds(1)};
  Verdict verdict;
  writer.baseline(bytes, start, Policy{}, verdict.after, 0);
  Snapshot snapshot;
  snapshot.at = start + std::chrono::seconds(1);
  writer.turn(bytes, snapshot, verdict, {});
  return bytes;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text = fuzz::text_of(bytes, size);
  const bool whole = text.starts_with(recording::kMagic.substr(0, 4));
  const auto replayed = [&]() -> Result<recording::Replayed> {
    auto tape =
        recording::TapeReader::open(whole ? std::string(text) : begun() + std::string(text));
    if (!tape) return tl::make_unexpected(tape.error());
    return recording::replay(*tape);
  };
  const auto once = replayed(), again = replayed();
  fuzz::promise(once.has_value() == again.has_value(), "a replay has one answer");
  if (once) {
    fuzz::promise(once->turns <= size + 2, "a turn takes a byte at least");
    fuzz::promise(once->identical() == again->identical(), "a replay has one answer");
  }
  return 0;
}
