// SPDX-License-Identifier: Apache-2.0
// Whose cgroup it is, by its place and its name.
#include "report/view/pod_index.h"

#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

TEST(PodIndexTest, TheLeafIsTheNameWithoutItsUnitSuffix) {
  const std::pair<const char*, const char*> cases[] = {
      {"/", ""},           {"/a.slice", "a"},       {"/a.slice/b-c.service", "b-c"},
      {"/x/y.scope", "y"}, {"/x/plain", "plain"},   {"", ""},
      {"/x/.scope", ""},   {"/x/a.b.slice", "a.b"}, {"leafless", "leafless"}};
  for (const auto& [path, name] : cases)
    EXPECT_EQ(unit_stem(path), name) << path;
}

TEST(PodIndexTest, RuntimesEndTheirScopesWithTheContainersId) {
  const std::string id(64, 'a');
  EXPECT_EQ(runtime_id("/p.slice/cri-containerd-" + id + ".scope"), id);
  EXPECT_EQ(runtime_id("/p.slice/crio-" + id + ".scope"), id);
  EXPECT_EQ(runtime_id("/p.slice/" + id), id);
  EXPECT_EQ(runtime_id("/p.slice/crio-" + id.substr(1) + ".scope"), "");
  EXPECT_EQ(runtime_id("/p.slice/crio-" + id.substr(1) + "g.scope"), "");
}

TEST(PodIndexTest, AContainerBelongsToThePodAboveIt) {
  const CgroupTable table = sample_cgroups();
  const PodIndex index(table);
  const auto pod_of = [&](std::uint64_t id) -> std::string {
    const PodRow* row = index.pod_of(*index.record_of(CgroupId{id}));
    return row ? row->pod->name : "";
  };
  EXPECT_EQ(pod_of(3), "hog");
  EXPECT_EQ(pod_of(4), "hog");
  EXPECT_EQ(pod_of(5), "web");
  EXPECT_EQ(pod_of(2), "");
  EXPECT_EQ(pod_of(1), "");
}

TEST(PodIndexTest, ACycleOfParentsTerminates) {
  CgroupTable table;
  table.records = {unknown_record(1, 2), unknown_record(2, 1)};
  EXPECT_EQ(PodIndex(table).pod_of(table.records[0]), nullptr);
}

}  // namespace
}  // namespace headroom::report
