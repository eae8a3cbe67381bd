// SPDX-License-Identifier: Apache-2.0
// The QoS class of pods.
#include "judge/resources/qos.h"

#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

namespace headroom::vectors {
namespace {

class QosVectors : public VectorTest {};

TEST_P(QosVectors, Agree) {
  const bool pod_level = line().at("pod_level_resources_enabled").get<bool>();
  EXPECT_EQ(name(qos_class(pod_of(line().at("pod"), pod_level))), text("qos"));
}

INSTANTIATE_TEST_SUITE_P(Lines, QosVectors, testing::ValuesIn(lines_of("qos.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
