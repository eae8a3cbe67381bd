// SPDX-License-Identifier: Apache-2.0
// The QoS class of pods.
#include "judge/resources/pod_resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <optional>
#include <string>

namespace headroom::vectors {
namespace {

class QosVectors : public VectorTest {};

TEST_P(QosVectors, Agree) {
  const bool pod_level = line().at("pod_level_resources_enabled").get<bool>();
  Pod pod = pod_of(line().at("pod"), pod_level);
  if (pod.pod_level && !has_pod_level_resources(pod)) {
    // BestEffort up to 1.36; a later release judges the pod by its containers, and so does
    // headroom.
    EXPECT_EQ(text("qos"), "BestEffort");
    return;
  }
  EXPECT_EQ(name(qos_class(pod)), text("qos"));
}

INSTANTIATE_TEST_SUITE_P(Lines, QosVectors, testing::ValuesIn(lines_of("qos.jsonl")), case_name);

using Json = nlohmann::json;

// A container's limit is a request where it has none.
void default_requests(Pod& pod) {
  for (auto* list : {&pod.init_containers, &pod.containers})
    for (Container& container : *list)
      container.requests.insert(container.limits.begin(), container.limits.end());
}

Json json_of(const ResourceList& list) {
  Json json = Json::object();
  for (const auto& [resource, quantity] : list)
    json[resource] = quantity.canonical();
  return json;
}

Json json_of(const std::optional<Container>& whole) {
  Json json = Json::object();
  if (whole && !whole->requests.empty()) json["requests"] = json_of(whole->requests);
  if (whole && !whole->limits.empty()) json["limits"] = json_of(whole->limits);
  return json;
}

Json canonical(Json resources) {
  if (resources.is_null()) return Json::object();
  for (auto& list : resources)
    for (auto& text : list)
      text = Quantity::parse(text.get<std::string>())->canonical();
  return resources;
}

class QosVectors136 : public VectorTest {
 protected:
  bool gate() const { return line().at("gates").at("PodLevelResources").get<bool>(); }
  // `resources: {}` makes a pod BestEffort in 1.36 whatever its containers request; a later release
  // judges it by its containers, and so does headroom.
  bool says_nothing() const {
    return gate() && line().at("pod").value("resources", Json(1)).empty();
  }
};

TEST_P(QosVectors136, AgreeAsWritten) {
  Pod pod = pod_of(line().at("pod"), gate());
  if (!says_nothing()) {
    EXPECT_EQ(name(qos_class(pod)), text("qos_as_written"));
    return;
  }
  EXPECT_EQ(text("qos_as_written"), "BestEffort");
  const QosClass with = qos_class(pod);
  pod.pod_level.reset();
  EXPECT_EQ(with, qos_class(pod));
}

TEST_P(QosVectors136, AgreeAfterDefaulting) {
  Pod pod = pod_of(line().at("pod"), gate());
  default_requests(pod);
  default_pod_level_resources(pod);
  if (gate())
    EXPECT_EQ(json_of(pod.pod_level),
              canonical(line().value("pod_resources_after_defaulting", Json::object())));
  if (!says_nothing()) EXPECT_EQ(name(qos_class(pod)), text("qos_after_defaulting"));
}

INSTANTIATE_TEST_SUITE_P(Lines, QosVectors136, testing::ValuesIn(lines_of("qos_136.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
