// SPDX-License-Identifier: Apache-2.0
// QoS classes: the corners of the rule.
#include "judge/resources/pod_resources.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

struct Asks {
  const char* cpu;
  const char* memory;
};
ResourceList list(Asks asks) {
  ResourceList made;
  if (asks.cpu) made["cpu"] = q(asks.cpu);
  if (asks.memory) made["memory"] = q(asks.memory);
  return made;
}
Container container(Asks requests, Asks limits) {
  return {.name = {}, .requests = list(requests), .limits = list(limits)};
}
const Container kEqual = container({"1", "1Gi"}, {"1000m", "1024Mi"});
const Container kNothing = container({}, {});

Pod of(std::vector<Container> containers) {
  Pod pod;
  pod.containers = std::move(containers);
  return pod;
}
Pod with_init(Container init, Container regular) {
  Pod pod = of({std::move(regular)});
  pod.init_containers = {std::move(init)};
  return pod;
}
Pod with_pod_level(Container whole, Container regular) {
  Pod pod = of({std::move(regular)});
  pod.pod_level = std::move(whole);
  return pod;
}
Pod declared(QosClass qos, Container regular) {
  Pod pod = of({std::move(regular)});
  pod.declared_qos = qos;
  return pod;
}

TEST(QosClass, OfAPod) {
  Container other = kNothing;
  other.requests["ephemeral-storage"] = q("1Gi");
  using enum QosClass;
  struct Case {
    const char* name;
    Pod pod;
    QosClass qos;
  };
  for (const Case& c :
       {Case{"nothing_asked", of({kNothing}), kBestEffort},
        Case{"no_container_at_all", of({}), kBestEffort},
        Case{"zeroes_are_nothing", of({container({"0", "0"}, {"0", "0"})}), kBestEffort},
        Case{"other_resources_do_not_count", of({other}), kBestEffort},
        Case{"equal_in_other_words", of({kEqual}), kGuaranteed},
        Case{"one_container_unlimited", of({kEqual, kNothing}), kBurstable},
        Case{"only_cpu", of({container({"1", nullptr}, {"1", nullptr})}), kBurstable},
        Case{"limits_without_requests", of({container({}, {"1", "1Gi"})}), kBurstable},
        Case{"requests_below_limits", of({container({"1", "1Gi"}, {"1", "2Gi"})}), kBurstable},
        Case{"sums_that_cross_over_are_guaranteed_upstream",
             of({container({"1", "1Gi"}, {"2", "1Gi"}), container({"2", "1Gi"}, {"1", "1Gi"})}),
             kGuaranteed},
        Case{"an_init_container_counts", with_init(kNothing, kEqual), kBurstable},
        Case{"an_init_container_may_be_the_only_one_to_ask",
             with_init(container({"1", nullptr}, {}), kNothing), kBurstable},
        Case{"pod_level_alone_counts", with_pod_level(kEqual, kNothing), kGuaranteed},
        Case{"pod_level_hides_the_containers",
             with_pod_level(container({"1", nullptr}, {}), kEqual), kBurstable},
        Case{"pod_level_without_an_entry_says_nothing", with_pod_level(kNothing, kEqual),
             kGuaranteed},
        Case{"pod_level_with_one_limit",
             with_pod_level(container({"1", "1Gi"}, {"1", nullptr}), kEqual), kBurstable},
        Case{"a_declared_class_wins", declared(kBestEffort, kEqual), kBestEffort}})
    EXPECT_EQ(qos_class(c.pod), c.qos) << c.name;
}

}  // namespace
}  // namespace headroom
