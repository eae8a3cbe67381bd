// SPDX-License-Identifier: Apache-2.0
#include "kube/post/queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

constexpr std::array<std::string_view, 3> kWhys{"threshold", "limit", "taint"};

Json posting_json(const Posting& posting) {
  const Evicted& evicted = posting.evicted;
  Json json{{"uid", evicted.uid},
            {"namespace", evicted.pod_namespace},
            {"name", evicted.name},
            {"why", kWhys[static_cast<std::size_t>(evicted.why)]},
            {"signal", evicted.signal},
            {"message", evicted.message},
            {"time", evicted.time},
            {"stamp", evicted.stamp},
            {"firstTime", posting.first_time},
            {"firstStamp", posting.first_stamp},
            {"count", posting.count},
            {"eventMade", posting.event_made}};
  json["done"] = Json::array();
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    if (posting.at(step).done) json["done"].push_back(name(step));
  return json;
}

Evicted::Why why_named(const std::string& word) {
  const auto found = std::find(kWhys.begin(), kWhys.end(), word);
  return found == kWhys.end() ? Evicted::Why::kThreshold
                              : static_cast<Evicted::Why>(found - kWhys.begin());
}

Posting posting_of_json(const Json& json) {
  Posting posting;
  posting.evicted = {.uid = json.at("uid"),
                     .name = json.at("name"),
                     .pod_namespace = json.at("namespace"),
                     .why = why_named(json.at("why")),
                     .signal = json.at("signal"),
                     .message = json.at("message"),
                     .time = json.at("time"),
                     .stamp = json.at("stamp")};
  posting.first_time = json.at("firstTime");
  posting.first_stamp = json.at("firstStamp");
  posting.count = json.at("count");
  posting.event_made = json.at("eventMade");
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    for (const Json& done : json.at("done"))
      if (done == name(step)) posting.at(step).done = true;
  return posting;
}

PostQueue queue_of_json(const Json& json) {
  PostQueue queue;
  if (const Json& cursor = json.at("cursor"); !cursor.is_null())
    queue.cursor = Cursor{cursor.at("inode"), cursor.at("offset")};
  for (const Json& posting : json.at("postings"))
    queue.postings.push_back(posting_of_json(posting));
  queue.node = {.conditions = json.at("node").at("conditions"),
                .taints = json.at("node").at("taints")};
  return queue;
}

}  // namespace

void take(PostQueue& queue, Evicted evicted) {
  for (Posting& posting : queue.postings)
    if (posting.evicted.uid == evicted.uid) return evicted_again(posting, std::move(evicted));
  queue.postings.push_back(posting_of(std::move(evicted)));
}

std::string as_text(const PostQueue& queue) {
  Json json{{"version", kVersion}, {"cursor", nullptr}, {"postings", Json::array()}};
  if (queue.cursor)
    json["cursor"] = {{"inode", queue.cursor->inode}, {"offset", queue.cursor->offset}};
  for (const Posting& posting : queue.postings)
    json["postings"].push_back(posting_json(posting));
  json["node"] = {{"conditions", queue.node.conditions}, {"taints", queue.node.taints}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<PostQueue> queue_of(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return failure("it is of another version");
    return queue_of_json(json);
  } catch (const std::exception& thrown) {  // the library's
    return failure(thrown.what());
  }
}

}  // namespace headroom::kube
