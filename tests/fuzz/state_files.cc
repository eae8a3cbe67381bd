// SPDX-License-Identifier: Apache-2.0
// The values of the state files, of this release and of 0.1: read right or refused. What was read
// is written so that it is read as the same.
#include "act/original_values.h"
#include "base/state/json_integer.h"
#include "daemon/forecast/memory_forecaster.h"
#include "daemon/state/eviction_state.h"
#include "daemon/state/unversioned_state.h"
#include "fuzz.h"

#include <exception>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::fuzz {
namespace {

template <class T>
void read_and_write(const nlohmann::json& json) {
  try {
    T value{};
    if (!state::from_json(json, value)) return;
    const nlohmann::json written = state::to_json(value);
    T again{};
    promise(state::from_json(written, again), "what is written is read");
    promise(state::to_json(again) == written, "and is the same");
  } catch (const nlohmann::json::exception&) {  // JSON of another kind: StateDocument refuses it
  }
}

// Forecasts go on from any state, or begin anew.
void forecast(const nlohmann::json& json) {
  try {
    PeakForecast::State state;
    if (!state::from_json(json, state)) return;
    PeakForecast forecast(std::move(state));
    const PeakForecast::PodUse pod{.pod = CgroupId{7}, .used = Bytes{1 << 20}, .limit = {}};
    for (int step = 0; step < 3; ++step)
      forecast.add(Instant(std::chrono::hours(1) + step * PeakForecast::kStep), {&pod, 1});
  } catch (const nlohmann::json::exception&) {
  }
}

void read_unversioned(const nlohmann::json& json) {
  const auto refused = [](const auto& decode) {
    try {
      decode();
    } catch (const nlohmann::json::exception&) {
    }
  };
  refused([&] {
    std::vector<Victim> victims;
    if (!daemon::decode_unversioned(json, victims)) return;
    for (const Victim& victim : victims)
      promise(static_cast<unsigned>(victim.phase) < state::kEnumerators<Victim::Phase>,
              "a phase is one of those that there are");
  });
  refused([&] {
    std::vector<TaintTimer> timers;
    (void)daemon::decode_unversioned(json, timers);
  });
  refused([&] {
    state::SavedTaints taints;
    (void)daemon::decode_unversioned(json, taints);
  });
}

}  // namespace
}  // namespace headroom::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const auto json = nlohmann::json::parse(fuzz::text_of(bytes, size), nullptr, false);
  if (json.is_discarded()) return 0;
  fuzz::read_and_write<std::vector<Victim>>(json);
  fuzz::read_and_write<std::vector<TaintTimer>>(json);
  fuzz::read_and_write<state::SavedTaints>(json);
  fuzz::read_and_write<act::MemoryHighOverrides::Found>(json);
  fuzz::read_and_write<act::MemoryMaxOverrides::Found>(json);
  fuzz::read_and_write<act::CgroupOverrides::Found>(json);
  fuzz::read_and_write<act::SuspendedLimits::Found>(json);
  fuzz::read_and_write<std::map<CgroupId, act::OriginalOomScores>>(json);
  fuzz::read_and_write<PeakForecast::State>(json);
  fuzz::forecast(json);
  if (has_integers_only(json)) fuzz::read_unversioned(json);  // as StateDocument does
  return 0;
}
