// SPDX-License-Identifier: Apache-2.0
// The operator's taints and the pods' timers over restarts of the daemon.
#include "daemon/state/taint_store.h"

#include "config/temp_dir.h"
#include "daemon/state/eviction_state.h"
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

Result<std::vector<Taint>> edit(TaintStore& store, const Lines& texts) {
  std::vector<TaintEdit> edits;
  for (const std::string& text : texts)
    edits.push_back(parse_taint_edit(text).value());
  return store.edit(edits, false);
}

bool readable(int fd) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

const std::vector<Taint> kConfigured{{"file", "", TaintEffect::kNoSchedule}};

TEST(TaintStore, EditsSurviveARestart) {
  test::TempDir dir;
  {
    TaintStore store(dir.path());
    ASSERT_TRUE(store.configure(kConfigured));
    ASSERT_TRUE(edit(store, {"hand=1:NoExecute"}));
  }
  TaintStore restarted(dir.path());
  ASSERT_TRUE(restarted.configure(kConfigured));
  EXPECT_EQ(lines(restarted.active_taints()), (Lines{"file:NoSchedule", "hand=1:NoExecute"}));
  ASSERT_TRUE(edit(restarted, {"file-"}));
  TaintStore again(dir.path());
  ASSERT_TRUE(again.configure(kConfigured));
  EXPECT_EQ(lines(again.active_taints()), Lines{"hand=1:NoExecute"})
      << "what was removed by hand is not brought back by the same file";
  ASSERT_TRUE(again.configure({{"new", "", TaintEffect::kNoSchedule}}));
  EXPECT_EQ(lines(again.active_taints()), (Lines{"hand=1:NoExecute", "new:NoSchedule"}));
}

TEST(TaintStore, WakesTheLoopAfterAnEdit) {
  test::TempDir dir;
  TaintStore store(dir.path());
  ASSERT_TRUE(store.configure({}));
  EXPECT_FALSE(readable(store.edited_fd()));
  EXPECT_FALSE(edit(store, {"absent-"}));
  EXPECT_FALSE(readable(store.edited_fd())) << "nothing has changed";
  ASSERT_TRUE(edit(store, {"a:NoExecute"}));
  EXPECT_TRUE(readable(store.edited_fd()));
  store.clear_edited();
  EXPECT_FALSE(readable(store.edited_fd()));
  ASSERT_EQ(store.shared_taints().size(), 1u);
  EXPECT_EQ(store.shared_taints()[0]->key, "a");
}

TEST(TaintStore, AnEditThatCannotBeSavedIsRejected) {
  test::TempDir dir;
  TaintStore store(dir.path() / "absent");
  EXPECT_FALSE(store.configure(kConfigured)) << "said at the start";
  EXPECT_EQ(lines(store.active_taints()), Lines{"file:NoSchedule"}) << "and in force all the same";
  EXPECT_FALSE(edit(store, {"a:NoExecute"}));
  EXPECT_EQ(lines(store.active_taints()), Lines{"file:NoSchedule"});
}

TEST(TaintStore, ADamagedFileIsMovedAndTheConfigurationApplies) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taints.json") << R"({"boot_id": 1)";
  TaintStore store(dir.path());
  const auto kept = store.configure(kConfigured);
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().what.find("set aside as .damaged"), std::string::npos);
  EXPECT_EQ(lines(store.active_taints()), Lines{"file:NoSchedule"});
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "taints.json.damaged"));
  EXPECT_TRUE(TaintStore(dir.path()).configure(kConfigured));
}

TEST(TaintStore, AFileOfAnotherBootIsIgnored) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taints.json") << R"({"boot_id": "other", "configured": [],
             "taints": [{"key": "a", "value": "", "effect": "NoExecute"}]})";
  TaintStore store(dir.path());
  ASSERT_TRUE(store.configure({}));
  EXPECT_TRUE(store.active_taints().empty());
}

TaintTimer timer(std::uint64_t cgroup, std::int64_t started) {
  return {CgroupId{cgroup}, at_ms(started), std::chrono::seconds(30)};
}

TEST(TaintTimersFile, ARestartDoesNotRestartTimers) {
  test::TempDir dir;
  ASSERT_TRUE(TaintTimersFile(dir.path()).save({timer(7, 1000), timer(8, 2000)}));
  const auto loaded = TaintTimersFile(dir.path()).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ((*loaded)[0].cgroup, CgroupId{7});
  EXPECT_EQ((*loaded)[1].due(), at_ms(32'000));
}

TEST(TaintTimersFile, WritesOnlyChanges) {
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
  EXPECT_TRUE(TaintTimersFile(dir.path()).load()->empty()) << "a cancelled timer stays cancelled";
}

TEST(TaintTimersFile, ADamagedFileIsAnError) {
  test::TempDir dir;
  std::ofstream(dir.path() / "taint-timers.json") << "[]";
  EXPECT_FALSE(TaintTimersFile(dir.path()).load());
  EXPECT_TRUE(TaintTimersFile(dir.path()).load()) << "it was set aside";
}

}  // namespace
}  // namespace headroom::daemon
