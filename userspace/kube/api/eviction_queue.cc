// SPDX-License-Identifier: Apache-2.0
#include "kube/api/eviction_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

constexpr std::array<std::string_view, 3> kCauseNames{"threshold", "limit", "taint"};

Json json_of(const PendingEviction& pending) {
  const EvictionRecord& evicted = pending.evicted;
  Json json{{"uid", evicted.uid},
            {"namespace", evicted.pod_namespace},
            {"name", evicted.name},
            {"why", kCauseNames[static_cast<std::size_t>(evicted.cause)]},
            {"signal", evicted.signal},
            {"message", evicted.message},
            {"time", evicted.time},
            {"stamp", evicted.stamp},
            {"firstTime", pending.first_time},
            {"firstStamp", pending.first_stamp},
            {"count", pending.count},
            {"eventMade", pending.event_made}};
  json["done"] = Json::array();
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    if (pending.at(step).done) json["done"].push_back(name(step));
  return json;
}

EvictionRecord::Cause cause_named(const std::string& word) {
  const auto found = std::find(kCauseNames.begin(), kCauseNames.end(), word);
  return found == kCauseNames.end()
             ? EvictionRecord::Cause::kThreshold
             : static_cast<EvictionRecord::Cause>(found - kCauseNames.begin());
}

PendingEviction pending_of_json(const Json& json) {
  PendingEviction pending;
  pending.evicted = {.uid = json.at("uid"),
                     .name = json.at("name"),
                     .pod_namespace = json.at("namespace"),
                     .cause = cause_named(json.at("why")),
                     .signal = json.at("signal"),
                     .message = json.at("message"),
                     .time = json.at("time"),
                     .stamp = json.at("stamp")};
  pending.first_time = json.at("firstTime");
  pending.first_stamp = json.at("firstStamp");
  pending.count = json.at("count");
  pending.event_made = json.at("eventMade");
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    for (const Json& done : json.at("done"))
      if (done == name(step)) pending.at(step).done = true;
  return pending;
}

EvictionQueue queue_of_json(const Json& json) {
  EvictionQueue queue;
  if (const Json& cursor = json.at("cursor"); !cursor.is_null())
    queue.cursor = Cursor{cursor.at("inode"), cursor.at("offset")};
  // Versions up to 0.1 wrote "postings".
  for (const Json& pending :
       json.contains("postings") ? json["postings"] : json.at("pendingEvictions"))
    queue.pending_evictions.push_back(pending_of_json(pending));
  queue.node = {.conditions = json.at("node").at("conditions"),
                .taints = json.at("node").at("taints")};
  return queue;
}

}  // namespace

void take(EvictionQueue& queue, EvictionRecord evicted) {
  for (PendingEviction& pending : queue.pending_evictions)
    if (pending.evicted.uid == evicted.uid)
      return merge_repeated_eviction(pending, std::move(evicted));
  queue.pending_evictions.push_back(pending_from(std::move(evicted)));
}

std::string as_text(const EvictionQueue& queue) {
  Json json{{"version", kVersion}, {"cursor", nullptr}, {"pendingEvictions", Json::array()}};
  if (queue.cursor)
    json["cursor"] = {{"inode", queue.cursor->inode}, {"offset", queue.cursor->offset}};
  for (const PendingEviction& pending : queue.pending_evictions)
    json["pendingEvictions"].push_back(json_of(pending));
  json["node"] = {{"conditions", queue.node.conditions}, {"taints", queue.node.taints}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EvictionQueue> queue_of(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return failure("it has another version");
    return queue_of_json(json);
  } catch (const std::exception& thrown) {  // thrown by the JSON library
    return failure(thrown.what());
  }
}

}  // namespace headroom::kube
