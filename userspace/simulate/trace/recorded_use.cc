// SPDX-License-Identifier: Apache-2.0
#include "recording/tape.h"
#include "simulate/trace/trace_reader.h"

#include <map>
#include <utility>

namespace headroom::simulate {
namespace {

using recording::TapeReader;
using recording::Turn;

std::string name_of(const Pod& pod) {
  return pod.pod_namespace + "/" + pod.name + " " + pod.uid;
}

class UseReader {
 public:
  explicit UseReader(std::string_view file) : file_(file) {}

  Result<> add(const Turn& turn) {
    ++turns_;
    const Instant at = turn.snapshot.at;
    if (turns_ > 1 && at < last_)
      return failure(file_ + ": turn " + std::to_string(turns_) + ": the clock goes back by " +
                     std::to_string(seconds_of(last_ - at)) + " s");
    last_ = at;
    if (!turn.snapshot.cgroups) return {};
    for (const PodReading& reading : turn.snapshot.pods)
      if (reading.record)
        if (const auto held = working_set(*reading.record)) add(reading, at, held->count);
    return {};
  }

  std::vector<std::shared_ptr<const MemorySeries>> take() {
    std::vector<std::shared_ptr<const MemorySeries>> all;
    for (auto& [name, pod] : pods_)
      all.push_back(std::make_shared<const MemorySeries>(std::move(pod.series)));
    return all;
  }

 private:
  struct PodUse {
    MemorySeries series;
    Instant first;
  };

  // Two sweeps of one instant: the later reading counts.
  void add(const PodReading& reading, Instant at, std::int64_t held) {
    auto [found, is_new] = pods_.try_emplace(name_of(*reading.pod));
    PodUse& use = found->second;
    if (is_new) use.first = at;
    use.series.name = found->first;
    if (reading.record->memory_max < HR_NO_LIMIT)
      use.series.limit = static_cast<double>(reading.record->memory_max);
    const Duration since = at - use.first;
    if (!use.series.at.empty() && use.series.at.back() == since) {
      use.series.values.back() = static_cast<double>(held);
      return;
    }
    use.series.at.push_back(since);
    use.series.values.push_back(static_cast<double>(held));
  }

  const std::string file_;
  std::size_t turns_ = 0;
  Instant last_;
  std::map<std::string, PodUse> pods_;
};

}  // namespace

Result<std::vector<std::shared_ptr<const MemorySeries>>> read_recorded_use(std::string_view file,
                                                                           std::string bytes) {
  auto tape = TapeReader::open(std::move(bytes));
  const std::string name(file);
  if (!tape) return failure(name + ": " + tape.error().what);
  UseReader reader(file);
  while (true) {
    const auto frame = tape->next();
    if (!frame) return failure(name + ": " + frame.error().what);
    if (!*frame) break;
    if (const auto* turn = std::get_if<Turn>(*frame))
      if (const auto added = reader.add(*turn); !added) return tl::make_unexpected(added.error());
  }
  auto series = reader.take();
  if (series.empty()) return failure(name + ": the recording holds no reading of a pod");
  return series;
}

}  // namespace headroom::simulate
