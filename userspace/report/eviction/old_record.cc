// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/old_record.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::json;

struct Renamed {
  const char* old_name;
  const char* new_name;
};

constexpr std::array kFields{Renamed{"act", "action"}, Renamed{"part", "target"},
                             Renamed{"minute", "flight_recording"}};
constexpr std::array kLatencies{Renamed{"signal_to_gone_ms", "signal_to_exit_ms"},
                                Renamed{"kill_to_gone_ms", "kill_to_exit_ms"}};
constexpr std::array kKubelet{Renamed{"lead_ms", "later_by_ms"}, Renamed{"same", "same_choice"}};
constexpr std::array kCandidate{Renamed{"over", "over_request"}, Renamed{"fate", "selection"}};
constexpr std::array kOutcomes{Renamed{"outlasting", "timed_out"},
                               Renamed{"vanished", "already_gone"}};
constexpr std::array kSelections{Renamed{"dying", "already_terminating"},
                                 Renamed{"futile", "nothing_to_free"}};

template <std::size_t N>
void rename_keys(Json& object, const std::array<Renamed, N>& renames) {
  if (!object.is_object()) return;
  for (const auto& [old_name, new_name] : renames) {
    const auto found = object.find(old_name);
    if (found == object.end()) continue;
    Json value = std::move(*found);
    object.erase(found);
    object.emplace(new_name, std::move(value));
  }
}

template <std::size_t N>
void rename_keys_at(Json& object, const char* key, const std::array<Renamed, N>& renames) {
  if (const auto found = object.find(key); found != object.end()) rename_keys(*found, renames);
}

template <std::size_t N>
void rename_value(Json& object, const char* key, const std::array<Renamed, N>& renames) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  for (const auto& [old_name, new_name] : renames)
    if (*found == old_name) *found = new_name;
}

}  // namespace

void rename_old_fields(Json& record) {
  if (!record.is_object()) return;
  rename_keys(record, kFields);
  rename_keys_at(record, "latency", kLatencies);
  rename_keys_at(record, "kubelet", kKubelet);
  rename_value(record, "outcome", kOutcomes);
  const auto ranking = record.find("ranking");
  if (ranking == record.end() || !ranking->is_array()) return;
  for (Json& candidate : *ranking) {
    if (!candidate.is_object()) continue;
    rename_keys(candidate, kCandidate);
    rename_value(candidate, "selection", kSelections);
  }
}

std::string with_new_fields(std::string line) {
  if (line.find("\"act\":") == line.npos) return line;
  Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return line;
  rename_old_fields(record);
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom::report
