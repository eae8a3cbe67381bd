// SPDX-License-Identifier: Apache-2.0
// The lifecycle programs on the kernel at hand: each event once, with its cgroup.
#include "observe/bpf/lifecycle_watch.h"
#include "support/test_cgroup.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TestCgroup;
using test::wait_for;
using test::writable_cgroup2;

class Lifecycle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
    auto opened = LifecycleWatch::open({});
    if (!opened) GTEST_SKIP() << opened.error().what;
    watch_ = std::move(*opened);
    // Functions cannot be hooked everywhere; the lab has an OOM kill reported on every kernel.
    for (const SkippedProgram& each : watch_->skipped_programs())
      EXPECT_TRUE(each.program.starts_with("oom_")) << each.program << ": " << each.why;
  }

  // Waits until it has come, or for two seconds.
  std::vector<hr_event> await(hr_event_kind kind, CgroupId id) {
    std::vector<hr_event> found;
    for (int i = 0; i < 20 && found.empty(); ++i) {
      pollfd ready{.fd = watch_->descriptor(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, 100);
      watch_->drain(take_);
      found = seen(kind, id);
    }
    return found;
  }
  std::vector<hr_event> seen(hr_event_kind kind, CgroupId id) const {
    std::vector<hr_event> found;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
                 [&](const hr_event& event) {
                   return event.kind == static_cast<hr_u32>(kind) && event.cgroup == id.value;
                 });
    return found;
  }

  std::vector<hr_event> events_;
  const LifecycleWatch::OnEvent take_ = [this](const hr_event& event) { events_.push_back(event); };
  std::unique_ptr<LifecycleWatch> watch_;
};

TEST_F(Lifecycle, BornEmptiedGone) {
  TestCgroup parent("life");
  CgroupId id;
  {
    TestCgroup child(parent, "child");
    id = child.id();
    const auto born = await(HR_EVENT_CREATED, id);
    ASSERT_EQ(born.size(), 1u);
    EXPECT_EQ(born[0].other, parent.id().value);
    EXPECT_GT(born[0].at_ns, 0u);
    child.spawn_sleeping_child();
    watch_->drain(take_);
    EXPECT_TRUE(seen(HR_EVENT_UNPOPULATED, id).empty()) << "it was just filled";
  }
  EXPECT_EQ(await(HR_EVENT_REMOVED, id).size(), 1u);
  EXPECT_EQ(seen(HR_EVENT_UNPOPULATED, id).size(), 1u);
  EXPECT_EQ(await(HR_EVENT_UNPOPULATED, parent.id()).size(), 1u) << "with its last child's process";
  EXPECT_EQ(watch_->lost(), 0u);
}

TEST_F(Lifecycle, ExitsOfWhatWasKilledAndOfNothingElse) {
  TestCgroup pod("killed");
  TestCgroup container(pod, "container");
  TestCgroup bystander("bystander");
  const pid_t dies = container.spawn_sleeping_child();
  const pid_t other = bystander.spawn_sleeping_child();
  ASSERT_TRUE(watch_->watch_exits(pod.id()));
  kill(other, SIGKILL);
  kill(dies, SIGKILL);
  wait_for(other, 2000);
  const auto exits = await(HR_EVENT_EXIT, container.id());
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].other, pod.id().value) << "the one that was killed, above it";
  EXPECT_EQ(exits[0].pid, static_cast<hr_u32>(dies));
  EXPECT_EQ(exits[0].status & 0x7f, static_cast<hr_u32>(SIGKILL));
  EXPECT_TRUE(seen(HR_EVENT_EXIT, bystander.id()).empty());

  watch_->forget_exits(pod.id());
  const pid_t later = container.spawn_sleeping_child();
  kill(later, SIGKILL);
  wait_for(later, 2000);
  watch_->drain(take_);
  EXPECT_EQ(seen(HR_EVENT_EXIT, container.id()).size(), 1u) << "forgotten";
}

TEST_F(Lifecycle, MoreKillsThanItCanFollowAreCounted) {
  std::uint64_t id = 1;
  while (watch_->watch_exits(CgroupId{id}) && id < 10'000)
    ++id;
  EXPECT_EQ(id, 257u);
  EXPECT_EQ(watch_->unwatched(), 1u);
  for (std::uint64_t each = 1; each < id; ++each)
    watch_->forget_exits(CgroupId{each});
  EXPECT_TRUE(watch_->watch_exits(CgroupId{id}));
}

TEST_F(Lifecycle, AFullRingIsCounted) {
  // 256 KiB of 64 bytes an event, without a reader.
  TestCgroup parent("full-ring");
  for (int i = 0; i < 2500; ++i)
    TestCgroup(parent, "child").remove();
  EXPECT_GT(watch_->lost(), 0u);
  watch_->drain(take_);
  EXPECT_GT(seen(HR_EVENT_CREATED, parent.id()).size(), 0u) << "the first ones were kept";
}

}  // namespace
}  // namespace headroom::observe
