// SPDX-License-Identifier: Apache-2.0
// The inventory by listing parents, which works on any filesystem; by handles: tests/bpf.
#include "observe/cgroup/cgroup_inventory.h"

#include "observe/cgroup/cgroupfs_source.h"
#include "support/fake_cgroupfs.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroup;
using test::FakeCgroupfs;

class InventoryTest : public ::testing::Test {
 protected:
  FakeCgroupfs tree_{{.name = "",
                      .files = {},
                      .children = {{.name = "a.slice",
                                    .files = {},
                                    .children = {{.name = "b c", .files = {}, .children = {}}}}}}};
  std::unique_ptr<CgroupfsSource> source_ =
      std::move(*CgroupfsSource::open({.root = tree_.root()}));
  CgroupInventory inventory_ =
      std::move(*CgroupInventory::open(tree_.root(), CgroupInventory::By::kParent));

  bool update() { return inventory_.update(*source_->sweep()); }
};

TEST_F(InventoryTest, PathsAndDirectories) {
  EXPECT_TRUE(update());
  EXPECT_EQ(inventory_.size(), 3u);
  const KnownCgroup* leaf = inventory_.find(CgroupId{tree_.id("a.slice/b c")});
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->path, "/a.slice/b c");
  EXPECT_EQ(leaf->parent, CgroupId{tree_.id("a.slice")});
  struct stat status {};
  ASSERT_EQ(fstat(leaf->directory.get(), &status), 0);
  EXPECT_EQ(CgroupId{status.st_ino}, leaf->id);
  EXPECT_EQ(inventory_.find(CgroupId{tree_.id("")})->path, "/");
  EXPECT_EQ(inventory_.find("/a.slice/b c"), leaf);
  EXPECT_EQ(inventory_.find("/a.slice/b"), nullptr);
}

TEST_F(InventoryTest, NothingChangedIsNoChange) {
  EXPECT_TRUE(update());
  EXPECT_FALSE(update());
}

TEST_F(InventoryTest, BirthsAndDeaths) {
  update();
  const CgroupId leaf{tree_.id("a.slice/b c")};
  tree_.add("a.slice", {.name = "new", .files = {}, .children = {}});
  EXPECT_TRUE(update());
  EXPECT_EQ(inventory_.find(CgroupId{tree_.id("a.slice/new")})->path, "/a.slice/new");
  tree_.remove("a.slice/b c");
  EXPECT_TRUE(update());
  EXPECT_EQ(inventory_.find(leaf), nullptr);
  EXPECT_EQ(inventory_.size(), 3u);
}

TEST_F(InventoryTest, AnIdOfNothingIsUnresolved) {
  hr_record records[2] = {unknown_record(tree_.id(""), 0), unknown_record(~0ull - 9, tree_.id(""))};
  EXPECT_TRUE(inventory_.update(records));
  EXPECT_EQ(inventory_.unresolved(), 1u);
  EXPECT_EQ(inventory_.size(), 1u);
}

}  // namespace
}  // namespace headroom::observe
