// SPDX-License-Identifier: Apache-2.0
// The operator's taints and the pods' timers over restarts of the daemon.
#include "daemon/state/taint_store.h"

#include "config/temp_dir.h"
#include "daemon/state/taint_timers_file.h"
#include "support/story.h"

#include <poll.h>

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using test::at_ms;
using Lines = std::vector<std::string>;

Lines lines(const std::vector<Taint>& taints) {
  Lines all;
  for (const Taint& taint : taints)
    all.push_back(to_string(taint));
  return all;
}

Result<std::vector<Taint>> edit(TaintStore& keeper, const Lines& texts) {
  std::vector<TaintEdit> edits;
  for (const std::string& text : texts)
    edits.push_back(parse_taint_edit(text).value());
  return keeper.edit(edits, false);
}

bool readable(int fd) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

const std::vector<Taint> kConfigured{{"file", "", TaintEffect::kNoSchedule}};

TEST(TaintStore, KeepsEditsOverARestart) {
  test::TempDir dir;
  {
    TaintStore keeper(dir.path());
    ASSERT_TRUE(keeper.configure(kConfigured));
    ASSERT_TRUE(edit(keeper, {"hand=1:NoExecute"}));
  }
  TaintStore restarted(dir.path());
  ASSERT_TRUE(restarted.configure(kConfigured));
  EXPECT_EQ(lines(restarted.in_force()), (Lines{"file:NoSchedule", "hand=1:NoExecute"}));
  ASSERT_TRUE(edit(restarted, {"file-"}));
  TaintStore again(dir.path());
  ASSERT_TRUE(again.configure(kConfigured));
  EXPECT_EQ(lines(again.in_force()), Lines{"hand=1:NoExecute"})
      << "what was removed by hand is not brought back by the same file";
  ASSERT_TRUE(again.configure({{"new", "", TaintEffect::kNoSchedule}}));
  EXPECT_EQ(lines(again.in_force()), (Lines{"hand=1:NoExecute", "new:NoSchedule"}));
}

TEST(TaintStore, WakesTheLoopOnceAnEditIsInForce) {
  test::TempDir dir;
  TaintStore keeper(dir.path());
  ASSERT_TRUE(keeper.configure({}));
  EXPECT_FALSE(readable(keeper.edited_fd()));
  EXPECT_FALSE(edit(keeper, {"absent-"}));
  EXPECT_FALSE(readable(keeper.edited_fd())) << "nothing has changed";
  ASSERT_TRUE(edit(keeper, {"a:NoExecute"}));
  EXPECT_TRUE(readable(keeper.edited_fd()));
  keeper.clear_edited();
  EXPECT_FALSE(readable(keeper.edited_fd()));
  ASSERT_EQ(keeper.shared().size(), 1u);
  EXPECT_EQ(keeper.shared()[0]->key, "a");
}

TEST(TaintStore, AnEditThatCannotBeKeptIsNotMade) {
  test::TempDir dir;
  TaintStore keeper(dir.path() / "absent");
  EXPECT_FALSE(keeper.configure(kConfigured)) << "said at the start";
  EXPECT_EQ(lines(keeper.in_force()), Lines{"file:NoSchedule"}) << "and in force all the same";
  EXPECT_FALSE(edit(keeper, {"a:NoExecute"}));
  EXPECT_EQ(lines(keeper.in_force()), Lines{"file:NoSchedule"});
}

TEST(TaintStore, ADamagedFileIsSetAsideAndTheConfigurationHolds) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taints.json") << R"({"boot_id": 1)";
  TaintStore keeper(dir.path());
  const auto kept = keeper.configure(kConfigured);
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().what.find("set aside as .damaged"), std::string::npos);
  EXPECT_EQ(lines(keeper.in_force()), Lines{"file:NoSchedule"});
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "taints.json.damaged"));
  EXPECT_TRUE(TaintStore(dir.path()).configure(kConfigured));
}

TEST(TaintStore, AnotherBootsFileCountsAsNone) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taints.json") << R"({"boot_id": "other", "configured": [],
             "taints": [{"key": "a", "value": "", "effect": "NoExecute"}]})";
  TaintStore keeper(dir.path());
  ASSERT_TRUE(keeper.configure({}));
  EXPECT_TRUE(keeper.in_force().empty());
}

TaintTimer timer(std::uint64_t cgroup, std::int64_t started) {
  return {CgroupId{cgroup}, at_ms(started), std::chrono::seconds(30)};
}

TEST(TaintTimersFile, GivesNobodyHisTimeAnew) {
  test::TempDir dir;
  ASSERT_TRUE(TaintTimersFile(dir.path()).save({timer(7, 1000), timer(8, 2000)}));
  const auto loaded = TaintTimersFile(dir.path()).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ((*loaded)[0].cgroup, CgroupId{7});
  EXPECT_EQ((*loaded)[1].due(), at_ms(32'000));
}

TEST(TaintTimersFile, WritesOnlyWhatIsNews) {
  test::TempDir dir;
  const auto file = dir.path() / "taint-timers.json";
  TaintTimersFile timers(dir.path());
  ASSERT_TRUE(timers.save({}));
  EXPECT_FALSE(std::filesystem::exists(file)) << "none, as before";
  ASSERT_TRUE(timers.save({timer(7, 1000)}));
  std::filesystem::remove(file);
  ASSERT_TRUE(timers.save({timer(7, 1000)}));
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(timers.save({}));
  EXPECT_TRUE(std::filesystem::exists(file)) << "a cancelled timer is not to come back";
  EXPECT_TRUE(TaintTimersFile(dir.path()).load()->empty());
}

TEST(TaintTimersFile, ADamagedOneIsAnError) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taint-timers.json") << "[]";
  EXPECT_FALSE(TaintTimersFile(dir.path()).load());
  EXPECT_TRUE(TaintTimersFile(dir.path()).load()) << "it was set aside";
}

}  // namespace
}  // namespace headroom::daemon
