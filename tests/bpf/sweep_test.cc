// SPDX-License-Identifier: Apache-2.0
// The sweep on the kernel at hand: ids, births, deaths, CPU time, pressure, losses, parity.
#include "act/kill/kill_fallback.h"
#include "base/clock.h"
#include "cgroup_mutex.h"
#include "daemon/turn/allocation_count.h"
#include "observe/best_source.h"
#include "observe/bpf/bpf_sweep.h"
#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_inventory.h"
#include "observe/cgroup/cgroupfs_source.h"
#include "observe/self_check.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::HeldCgroupMutex;
using test::TestCgroup;
using test::writable_cgroup2;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto root = writable_cgroup2();
    if (!root) GTEST_SKIP() << "no writable cgroup v2";
    root_ = *root;
    auto opened = BpfSweep::open({.root = root_, .capacity = 4096});
    if (!opened) GTEST_SKIP() << opened.error().what;
    sweep_ = std::move(*opened);
  }

  std::optional<hr_record> look(CgroupId id) {
    auto swept = sweep_->sweep();
    EXPECT_TRUE(swept) << swept.error().what;
    for (const hr_record& record : *swept)
      if (record.id == id.value) return record;
    return std::nullopt;
  }

  // What the files say of the same cgroup.
  static hr_record files_of(const TestCgroup& cgroup) {
    auto files = CgroupFiles::open(AT_FDCWD, cgroup.path().c_str());
    EXPECT_TRUE(files);
    std::vector<char> buffer(16 * 1024);
    DescriptorBudget budget{.files = 16};
    hr_record record = unknown_record(files->id(), 0);
    EXPECT_TRUE(files->read(kAllGroups, false, buffer, budget, record));
    return record;
  }

  std::string root_;
  std::unique_ptr<BpfSweep> sweep_;
};

void burn() {
  for (;;)
    asm volatile("");
}

void pass_time(int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

TEST_F(Sweep, SeesTheTreeWithItsIds) {
  TestCgroup parent("ids");
  TestCgroup child(parent, "child");
  const auto record = look(child.id());
  ASSERT_TRUE(record);
  EXPECT_EQ(record->parent_id, parent.id().value);
  const auto above = look(parent.id());
  ASSERT_TRUE(above);
  auto swept = sweep_->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->front().parent_id, 0u) << "the root comes first";
  EXPECT_EQ(above->parent_id, swept->front().id);
  EXPECT_EQ(swept->front().populated, 1u);
}

TEST_F(Sweep, ParentsComeBeforeChildren) {
  TestCgroup parent("order");
  TestCgroup child(parent, "child");
  auto swept = sweep_->sweep();
  ASSERT_TRUE(swept);
  for (std::size_t i = 1; i < swept->size(); ++i) {
    const auto before = swept->first(i);
    EXPECT_TRUE(std::any_of(before.begin(), before.end(), [&](const hr_record& record) {
      return record.id == (*swept)[i].parent_id;
    }));
  }
}

TEST_F(Sweep, PopulatedFlips) {
  TestCgroup parent("populated");
  TestCgroup child(parent, "child");
  EXPECT_EQ(look(child.id())->populated, 0u);
  child.spawn_sleeping_child();
  EXPECT_EQ(look(child.id())->populated, 1u);
  EXPECT_EQ(look(parent.id())->populated, 1u) << "by its child";
}

TEST_F(Sweep, GoneCgroupsVanish) {
  CgroupId id;
  {
    TestCgroup cgroup("gone");
    id = cgroup.id();
    EXPECT_TRUE(look(id));
  }
  EXPECT_FALSE(look(id));
}

TEST_F(Sweep, CpuTimeOfABusyChild) {
  TestCgroup cgroup("busy");
  cgroup.spawn(burn);
  pass_time(300);
  const hr_record before = files_of(cgroup);
  const auto record = look(cgroup.id());
  const hr_record after = files_of(cgroup);
  ASSERT_TRUE(record);
  ASSERT_TRUE(record->valid & HR_CPU);
  EXPECT_GT(record->cpu_usage_ns, 50'000'000u);
  EXPECT_GE(record->cpu_usage_ns + 20'000'000, before.cpu_usage_ns);
  EXPECT_LE(record->cpu_usage_ns, after.cpu_usage_ns + 20'000'000);
  EXPECT_EQ(record->cpu_user_ns + record->cpu_system_ns, record->cpu_usage_ns);
}

TEST_F(Sweep, CpuTimeIsFreshWithoutTheFiles) {
  if (!(sweep_->flushed() & HR_CPU)) sweep_->sweep();
  if (!(sweep_->flushed() & HR_CPU)) GTEST_SKIP() << "this kernel offers BPF no rstat flush";
  TestCgroup cgroup("fresh");
  cgroup.spawn(burn);
  pass_time(100);
  const hr_u64 first = look(cgroup.id())->cpu_usage_ns;
  pass_time(200);
  // The kernel by itself flushes every two seconds only.
  EXPECT_GT(look(cgroup.id())->cpu_usage_ns, first + 20'000'000);
}

TEST_F(Sweep, AgreesWithTheFilesEverywhere) {
  TestCgroup cgroup("parity");
  cgroup.spawn(burn);
  cgroup.spawn(burn);
  pass_time(200);
  SelfCheck parity;
  for (int look = 0; look < 3; ++look) {  // the tree is not ours alone
    auto checked = run_self_check(*sweep_, {.root = root_, .cgroups = 256});
    ASSERT_TRUE(checked) << checked.error().what;
    parity = std::move(*checked);
    if (parity.disagreements.empty()) break;
  }
  for (const Disagreement& each : parity.disagreements)
    ADD_FAILURE() << to_string(each);
  EXPECT_GT(parity.compared[4], 0u) << "cpu";
  const hr_record files = files_of(cgroup);
  if (files.valid & HR_PSI) {
    EXPECT_GT(parity.compared[6], 0u) << "psi";
  }
}

TEST_F(Sweep, AFullMapIsCounted) {
  TestCgroup parent("full");
  TestCgroup one(parent, "one");
  TestCgroup two(parent, "two");
  auto small = BpfSweep::open({.root = parent.path(), .capacity = 2});
  ASSERT_TRUE(small) << small.error().what;
  auto swept = (*small)->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->size(), 2u);
  EXPECT_EQ((*small)->lost_in_last_sweep(), 1u);
  ASSERT_TRUE((*small)->sweep());
  EXPECT_EQ((*small)->lost(), 2u);
}

TEST_F(Sweep, RoomIsMadeForATreeThatGrows) {
  TestCgroup parent("grows");
  std::vector<std::unique_ptr<TestCgroup>> children;
  auto best = BestSource::open({.root = parent.path(), .capacity = 2, .self_check = 0});
  ASSERT_TRUE(best);
  ASSERT_EQ((*best)->name(), "bpf");
  EXPECT_EQ((*best)->capacity(), 2u);
  const auto grow_to = [&](std::size_t count) {
    while (children.size() < count)
      children.push_back(std::make_unique<TestCgroup>(parent, std::to_string(children.size())));
    const std::uint32_t pass = (*best)->change_stamps().pass;
    const auto swept = (*best)->sweep();
    ASSERT_TRUE(swept) << swept.error().what;
    EXPECT_EQ(swept->size(), count + 1) << "none is missing";
    EXPECT_EQ((*best)->name(), "bpf");
    EXPECT_GT((*best)->change_stamps().pass, pass) << "passes are numbered on";
  };
  grow_to(5);
  EXPECT_EQ((*best)->capacity(), 12u);
  EXPECT_FALSE((*best)->same_cgroups());
  // Between decisions before it is needed.
  (*best)->set_compare_usage(false);
  grow_to(10);
  EXPECT_EQ((*best)->capacity(), 12u);
  grow_to(11);
  EXPECT_EQ((*best)->capacity(), 22u);
  grow_to(11);
  EXPECT_TRUE((*best)->same_cgroups());
}

TEST_F(Sweep, RoomIsSizedFromTheTree) {
  TestCgroup parent("sized");
  TestCgroup one(parent, "one");
  TestCgroup two(parent, "two");
  auto best = BestSource::open({.root = parent.path(), .capacity = 1, .self_check = 0});
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->capacity(), 6u);
}

TEST_F(Sweep, OnlyTheGroupsAskedFor) {
  TestCgroup cgroup("groups");
  auto psi = BpfSweep::open({.root = root_, .groups = HR_PSI, .capacity = 4096});
  ASSERT_TRUE(psi);
  auto swept = (*psi)->sweep();
  ASSERT_TRUE(swept);
  for (const hr_record& record : *swept) {
    EXPECT_EQ(record.valid & ~static_cast<unsigned>(HR_PSI), 0u);
    EXPECT_EQ(record.cpu_usage_ns, HR_UNKNOWN);
  }
}

TEST_F(Sweep, AllocatesNothing) {
  ASSERT_TRUE(sweep_->sweep());
  const std::uint64_t before = daemon::thread_allocation_count();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(sweep_->sweep());
  EXPECT_EQ(daemon::thread_allocation_count() - before, 0u);
}

TEST_F(Sweep, TheTreeAtOnceIsTheSameTree) {
  TestCgroup parent("at-once");
  TestCgroup busy(parent, "busy");
  TestCgroup below(busy, "below");
  TestCgroup empty(parent, "empty");
  TestCgroup dead(parent, "dead");
  below.spawn_sleeping_child();
  const Fd pinned(::open(dead.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  dead.remove();
  auto called = BpfSweep::open({.root = parent.path(), .capacity = 16});
  auto in_parts = BpfSweep::open({.root = parent.path(), .capacity = 16, .call_limit = 2});
  auto iterated = BpfSweep::open({.root = parent.path(), .capacity = 16, .by_call = false});
  ASSERT_TRUE(called && in_parts && iterated);
  EXPECT_FALSE((*iterated)->by_call());
  if (!(*called)->by_call()) GTEST_SKIP() << "this kernel lets no called program walk the tree";
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_TRUE((*called)->sweep() && (*in_parts)->sweep() && (*iterated)->sweep());
    const auto records = (*iterated)->records();
    ASSERT_EQ(records.size(), 4u) << "the dead one has its place, but is not reported";
    EXPECT_EQ((*called)->calls(), 1u);
    EXPECT_GE((*in_parts)->calls(), 2u) << "four cgroups, two a call";
    for (BpfSweep* other : {called->get(), in_parts->get()}) {
      ASSERT_EQ(other->records().size(), records.size());
      EXPECT_EQ(std::memcmp(other->records().data(), records.data(), records.size_bytes()), 0)
          << pass;
    }
  }
}

// Runs `change` over and over on another thread, from construction to destruction.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void()> change)
      : thread_([change = std::move(change)](const std::stop_token& stop) {
          while (!stop.stop_requested())
            change();
        }) {}

 private:
  std::jthread thread_;
};

TEST_F(Sweep, EachCgroupIsSeenOnceWhileOthersComeAndGo) {
  TestCgroup parent("churn");
  std::vector<std::unique_ptr<TestCgroup>> kept;
  for (int i = 0; i < 8; ++i)
    kept.push_back(std::make_unique<TestCgroup>(parent, "kept" + std::to_string(i)));
  const std::string passing = parent.path() + "/passing";
  // One in front of each that is kept, and one behind: a call ends at each of them.
  const Meanwhile churn([&] {
    for (const auto& each : kept)
      mkdir((each->path() + "/passing").c_str(), 0755);
    mkdir(passing.c_str(), 0755);
    for (const auto& each : kept)
      rmdir((each->path() + "/passing").c_str());
    rmdir(passing.c_str());
  });
  auto sweep = BpfSweep::open({.root = parent.path(), .capacity = 64, .call_limit = 1});
  ASSERT_TRUE(sweep) << sweep.error().what;
  if (!(*sweep)->by_call()) GTEST_SKIP() << "this kernel lets no called program walk the tree";
  std::uint32_t most_calls = 0;
  std::vector<hr_u64> before;
  for (int pass = 0; pass < 2000; ++pass) {
    const auto swept = (*sweep)->sweep();
    ASSERT_TRUE(swept) << swept.error().what;
    std::vector<hr_u64> ids;
    for (const hr_record& r : *swept)
      ids.push_back(r.id);
    if ((*sweep)->same_cgroups()) ASSERT_EQ(ids, before) << pass;
    before = std::move(ids);
    most_calls = std::max(most_calls, (*sweep)->calls());
    for (const auto& each : kept)
      ASSERT_EQ(std::count_if(swept->begin(), swept->end(),
                              [&](const hr_record& r) { return r.id == each->id().value; }),
                1)
          << pass;
    for (std::size_t i = 1; i < swept->size(); ++i)
      ASSERT_TRUE(std::any_of(swept->begin(), swept->begin() + static_cast<std::ptrdiff_t>(i),
                              [&](const hr_record& r) { return r.id == (*swept)[i].parent_id; }))
          << "a parent comes before its children";
  }
  EXPECT_GT(most_calls, kept.size());
}

// An attach holds cgroup_mutex while it waits for an RCU grace period, seconds at worst.
TEST_F(Sweep, APassDoesNotWaitForCgroupMutex) {
  auto called = BpfSweep::open({.root = root_, .capacity = 4096});
  ASSERT_TRUE(called) << called.error().what;
  if (!(*called)->by_call()) GTEST_SKIP() << "this kernel lets no called program walk the tree";
  const TestCgroup pod("mutex");
  // Since 6.16 the first pass opens io.stat of each child of the root, which a mkdir in that child
  // keeps waiting: it holds the directory's lock.
  ASSERT_TRUE((*called)->sweep());
  const auto mutex = HeldCgroupMutex::hold(pod.path());
  ASSERT_TRUE(mutex) << mutex.error().what;
  std::atomic<bool> made = false;
  const std::string other = pod.path() + "/other";
  std::thread maker([&] {
    mkdir(other.c_str(), 0755);
    made = true;
  });
  for (const bool urgent : {false, true}) {
    (*called)->set_urgent(urgent);
    for (int pass = 0; pass < 20; ++pass)
      EXPECT_TRUE((*called)->sweep());
  }
  EXPECT_TRUE((*mutex)->is_held());
  EXPECT_FALSE(made) << "mkdir takes it";
  (*mutex)->let_go();
  maker.join();
  rmdir(other.c_str());
}

// Nor does a kill, whose write to cgroup.kill does.
TEST_F(Sweep, AKillDoesNotWaitForCgroupMutex) {
  TestCgroup pod("mutex-kill");
  const pid_t child = pod.spawn_sleeping_child();
  const Fd kill(openat(pod.directory(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  act::KillFallback fallback(&observe::now);
  const auto mutex = HeldCgroupMutex::hold(pod.path());
  ASSERT_TRUE(mutex) << mutex.error().what;
  std::atomic<bool> written = false;
  std::thread killer([&] {
    EXPECT_EQ(fallback.kill(pod.directory(), kill.get()), 1);
    written = true;
  });
  const auto status = test::wait_for(child, 5000);
  EXPECT_TRUE(status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL);
  EXPECT_TRUE((*mutex)->is_held());
  EXPECT_FALSE(written);
  for (int i = 0; i < 1000 && !fallback.sent_before_write(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(fallback.sent_before_write());
  (*mutex)->let_go();
  killer.join();
}

// Nothing that is there is read as gone, however many there are.
TEST_F(Sweep, FortyThousandCgroupsAreAllSeen) {
  constexpr int kParents = 40, kEach = 1000;
  TestCgroup top("many");
  std::vector<std::unique_ptr<TestCgroup>> parents;
  const auto add_parents = [&](int count) {
    for (int i = 0; i < count; ++i) {
      parents.push_back(std::make_unique<TestCgroup>(top, std::to_string(parents.size())));
      for (int child = 0; child < kEach; ++child)
        ASSERT_EQ(mkdir((parents.back()->path() + "/" + std::to_string(child)).c_str(), 0755), 0);
    }
  };
  const auto remove_all = [&] {
    for (const auto& parent : parents)
      for (int child = 0; child < kEach; ++child)
        rmdir((parent->path() + "/" + std::to_string(child)).c_str());
  };
  auto best = BestSource::open({.root = top.path(), .self_check = 0});
  ASSERT_TRUE(best);
  ASSERT_EQ((*best)->name(), "bpf");
  for (const std::size_t half : {std::size_t{1}, std::size_t{2}}) {
    add_parents(kParents / 2);
    const std::size_t expected = 1 + half * kParents / 2 * (1 + kEach);
    for (int pass = 0; pass < 3; ++pass) {
      const auto swept = (*best)->sweep();
      ASSERT_TRUE(swept) << swept.error().what;
      ASSERT_EQ(swept->size(), expected);
      std::vector<hr_u64> ids;
      for (const hr_record& record : *swept)
        ids.push_back(record.id);
      std::sort(ids.begin(), ids.end());
      EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "each once";
      EXPECT_EQ((*best)->same_cgroups(), pass > 0);
    }
    const BpfSweep& bpf = *(*best)->bpf();
    if (bpf.by_call()) {
      const std::size_t limit = BpfSweep::Options().call_limit;
      EXPECT_EQ(bpf.calls(), (expected + limit - 1) / limit);
    }
  }
  remove_all();
}

// One iterator is read again and again.
TEST_F(Sweep, FlushesMemoryAsOftenAsItIsAsked) {
  const bool first = sweep_->flush_memory();
  EXPECT_EQ(sweep_->flushes_memory(), first);
  for (int time = 2; time <= 5; ++time)
    EXPECT_EQ(sweep_->flush_memory(), first) << "time " << time;
  if (!first) GTEST_SKIP() << "this kernel lets no program that is called flush memory";
}

// Without another read of memory.stat, for which the kernel allocates.
TEST_F(Sweep, KnowsTheRootsMemoryAfterAFlush) {
  EXPECT_EQ(sweep_->flushed_root(), nullptr) << "before the first";
  if (!sweep_->flush_memory())
    GTEST_SKIP() << "this kernel lets no program that is called flush memory";
  const hr_record* root = sweep_->flushed_root();
  if (!root && !sweep_->by_call())
    GTEST_SKIP() << "this kernel lets no program read the memory controller: the file is read";
  ASSERT_NE(root, nullptr);
  std::map<std::string, std::uint64_t> file;
  std::ifstream text(root_ + "/memory.stat");
  for (std::pair<std::string, std::uint64_t> line; text >> line.first >> line.second;)
    file.insert(line);
  const auto expect_near = [&](std::uint64_t bytes, const char* key) {
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(file.at(key)), 32 << 20) << key;
  };
  expect_near(root->anon, "anon");
  expect_near(root->file, "file");
  expect_near(root->inactive_file, "inactive_file");
}

TEST_F(Sweep, AnUrgentPassFlushesNoCpuTime) {
  if (!sweep_->by_call()) GTEST_SKIP() << "here each pass flushes";
  ASSERT_TRUE(sweep_->sweep());
  const std::uint32_t flushed = sweep_->flushed();
  sweep_->set_urgent(true);
  ASSERT_TRUE(sweep_->sweep());
  EXPECT_EQ(sweep_->flushed(), 0u);
  sweep_->set_urgent(false);
  ASSERT_TRUE(sweep_->sweep());
  EXPECT_EQ(sweep_->flushed(), flushed);
}

TEST_F(Sweep, ACgroupAtRestIsLeftAsItWas) {
  TestCgroup parent("rest");
  TestCgroup asleep(parent, "asleep");
  TestCgroup busy(parent, "busy");
  asleep.spawn_sleeping_child();
  busy.spawn(burn);
  pass_time(50);
  auto resting = BpfSweep::open({.root = parent.path(), .capacity = 16});
  ASSERT_TRUE(resting) << resting.error().what;
  (*resting)->idle_read_period(4);
  std::uint32_t idle_skipped = 0;
  hr_u64 busy_ns = 0;
  for (int i = 0; i < 9; ++i) {
    auto swept = (*resting)->sweep();
    ASSERT_TRUE(swept);
    ASSERT_EQ(swept->size(), 3u);
    EXPECT_EQ((*swept)[1].id, asleep.id().value);
    EXPECT_EQ((*swept)[2].id, busy.id().value);
    if ((*resting)->flushed() & HR_CPU) {
      EXPECT_GT((*swept)[2].cpu_usage_ns, busy_ns);
    }
    busy_ns = (*swept)[2].cpu_usage_ns;
    idle_skipped += (*resting)->idle_skipped();
    pass_time(20);
  }
  // At its turn it is read: in two of nine sweeps, or three. The first sweep knew no cgroup.
  EXPECT_GE(idle_skipped, 5u);
  EXPECT_LE(idle_skipped, 8u);
  auto whole = BpfSweep::open({.root = parent.path(), .capacity = 16});
  ASSERT_TRUE(whole && (*whole)->sweep());
  EXPECT_EQ(std::memcmp(&(*whole)->records()[1], &(*resting)->records()[1], sizeof(hr_record)), 0);

  // A new cgroup in its place has no history of rest.
  asleep.remove();
  ASSERT_TRUE((*resting)->sweep());
  ASSERT_EQ((*resting)->records().size(), 2u);
  EXPECT_EQ((*resting)->records()[1].id, busy.id().value);
  EXPECT_GE((*resting)->records()[1].cpu_usage_ns, busy_ns);
}

// The kernel adds a wait to cpu.pressure up to 2 s after it ended.
TEST_F(Sweep, ALateWaitOfACgroupAtRestIsRead) {
  TestCgroup parent("late");
  TestCgroup waiting(parent, "waiting");
  for (int i = 0; i < 2 * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); ++i)
    waiting.spawn(burn);
  pass_time(400);
  std::ofstream(waiting.path() + "/cgroup.freeze") << "1";
  pass_time(100);
  auto walking = BpfSweep::open({.root = parent.path(), .capacity = 16, .updated_only = false});
  auto resting = BpfSweep::open({.root = parent.path(), .capacity = 16});
  ASSERT_TRUE(walking && resting);
  (*walking)->idle_read_period(1024);
  (*walking)->set_compare_usage(false);
  (*resting)->idle_read_period(64);
  (*resting)->set_compare_usage(false);
  ASSERT_TRUE((*walking)->sweep() && (*walking)->sweep());
  for (int i = 0; i < 50; ++i) {  // it is its turn at the 50th after the 63rd
    ASSERT_TRUE((*resting)->sweep());
    pass_time(50);
  }
  ASSERT_TRUE((*walking)->sweep() && (*resting)->sweep());
  hr_u64 total_us = 0;
  std::string word;
  for (std::ifstream pressure(waiting.path() + "/cpu.pressure"); pressure >> word;)
    if (word.starts_with("total=")) {
      total_us = std::stoull(word.substr(6));
      break;
    }
  ASSERT_GT(total_us, 50'000u) << "nothing waited";
  for (BpfSweep* each : {walking->get(), resting->get()})
    EXPECT_EQ(each->records()[1].psi_ns[HR_PSI_CPU][HR_PSI_SOME] / 1000, total_us);
}

// A child that uses some CPU time whenever it is asked to, and says when it has.
class Worker {
 public:
  explicit Worker(TestCgroup& cgroup) {
    int ask[2], answer[2];
    if (pipe2(ask, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) std::abort();
    pid_ = cgroup.spawn([&] {
      for (char byte = 0; ::read(ask[0], &byte, 1) == 1;) {
        for (volatile int i = 0; i < 2'000'000; i = i + 1) {
        }
        if (::write(answer[1], &byte, 1) != 1) return;
      }
    });
    close(ask[0]);
    close(answer[1]);
    ask_.reset(ask[1]);
    answer_.reset(answer[0]);
  }
  ~Worker() { kill(pid_, SIGKILL); }  // it may have been moved elsewhere
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void work() const {
    char byte = 0;
    ASSERT_EQ(::write(ask_.get(), &byte, 1), 1);
    ASSERT_EQ(::read(answer_.get(), &byte, 1), 1);
    while (!is_asleep())
      pass_time(1);
    pass_time(1);  // its time is counted when it stops running
  }
  pid_t pid() const { return pid_; }

 private:
  bool is_asleep() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string field;
    for (int i = 0; i < 3; ++i)
      stat >> field;  // pid, name without blanks, state
    return field == "S";
  }

  Fd ask_, answer_;
  pid_t pid_ = 0;
};

// Where the kernel says which cgroups were updated, no other one is looked at.
class UpdatedOnly : public Sweep {
 protected:
  static constexpr int kCgroups = 300;

  void SetUp() override {
    Sweep::SetUp();
    if (IsSkipped()) return;
    top_.emplace("updated");
    for (int i = 0; i < kCgroups; ++i)
      children_.push_back(std::make_unique<TestCgroup>(*top_, std::to_string(i)));
    auto opened = BpfSweep::open({.root = top_->path(), .capacity = 1024});
    ASSERT_TRUE(opened) << opened.error().what;
    sweep_ = std::move(*opened);
    sweep_->idle_read_period(64);
    sweep_->set_compare_usage(false);
    // Two to number them; then all have been at rest for some seconds.
    ASSERT_TRUE(sweep_->sweep() && sweep_->sweep());
    pass_time(5000);
    ASSERT_TRUE(sweep_->sweep() && sweep_->sweep());
    if (!sweep_->knows_updated())
      GTEST_SKIP() << "this kernel does not say which: " << sweep_->updated_refused();
  }

  const hr_record* find(CgroupId id) {
    if (!sweep_->sweep()) return nullptr;
    for (const hr_record& record : sweep_->records())
      if (record.id == id.value) return &record;
    return nullptr;
  }

  std::optional<TestCgroup> top_;
  std::vector<std::unique_ptr<TestCgroup>> children_;
};

TEST_F(UpdatedOnly, FewAreLookedAt) {
  EXPECT_LE(sweep_->visited(), 1 + kCgroups / 64 + 1) << "the root, and those whose turn it is";
  EXPECT_EQ(sweep_->records().size(), std::size_t{kCgroups} + 1);
  EXPECT_TRUE(sweep_->same_cgroups());
  const auto numbers = sweep_->change_stamps();
  EXPECT_EQ(static_cast<std::uint32_t>(std::count_if(
                numbers.of_records.begin(), numbers.of_records.end(),
                [&](const hr_change_stamp& stamp) { return stamp.pass == numbers.pass; })),
            sweep_->records().size() - sweep_->idle_skipped());
}

TEST_F(UpdatedOnly, BeforeADecisionAllAre) {
  sweep_->set_compare_usage(true);
  ASSERT_TRUE(sweep_->sweep());
  EXPECT_EQ(sweep_->visited(), kCgroups + 1u);
  sweep_->set_compare_usage(false);
  ASSERT_TRUE(sweep_->sweep());
  EXPECT_LT(sweep_->visited(), 20u);
}

TEST_F(UpdatedOnly, CpuTimeIsSeenAtOnceWhoeverFlushed) {
  TestCgroup& one = *children_[170];
  const Worker worker(one);
  ASSERT_TRUE(sweep_->sweep());
  for (int round = 0; round < 20; ++round) {
    const hr_u64 before = find(one.id())->cpu_usage_ns;
    worker.work();
    if (round % 2) files_of(one);  // reading cpu.stat flushes
    const hr_record* const record = find(one.id());
    ASSERT_TRUE(record);
    EXPECT_GT(record->cpu_usage_ns, before) << round;
    EXPECT_EQ(record->cpu_usage_ns / 1000, files_of(one).cpu_usage_ns / 1000) << round;
    EXPECT_LT(sweep_->visited(), 20u);
    if (round == 10) pass_time(5000);  // long at rest
  }
}

TEST_F(UpdatedOnly, WhatMovesInAsleepIsSeenAtOnce) {
  TestCgroup& from = *children_[5];
  TestCgroup& to = *children_[250];
  const pid_t sleeper = from.spawn_sleeping_child();
  pass_time(100);
  EXPECT_EQ(find(from.id())->populated, 1u);
  EXPECT_EQ(find(to.id())->populated, 0u);
  std::ofstream(to.path() + "/cgroup.procs") << sleeper << std::flush;
  EXPECT_EQ(find(to.id())->populated, 1u);
  EXPECT_EQ(find(from.id())->populated, 0u);
  std::ofstream(from.path() + "/cgroup.procs") << sleeper << std::flush;
  EXPECT_EQ(find(to.id())->populated, 0u);
}

TEST_F(UpdatedOnly, WhatIsMadeOrRemovedIsSeenAtOnce) {
  TestCgroup born(*children_[40], "born");
  ASSERT_TRUE(find(born.id()));
  EXPECT_EQ(sweep_->visited(), kCgroups + 2u);
  EXPECT_FALSE(sweep_->same_cgroups());
  const Worker worker(*children_[200]);  // its number is another one now
  for (int round = 0; round < 4; ++round) {
    const hr_u64 before = find(children_[200]->id())->cpu_usage_ns;
    worker.work();
    EXPECT_GT(find(children_[200]->id())->cpu_usage_ns, before) << round;
    EXPECT_EQ(sweep_->records().size(), kCgroups + 2u);
  }
  const CgroupId id = born.id();
  born.remove();
  EXPECT_FALSE(find(id));
  EXPECT_EQ(sweep_->records().size(), kCgroups + 1u);
  pass_time(5000);
  ASSERT_TRUE(sweep_->sweep() && sweep_->sweep() && sweep_->sweep());
  EXPECT_LT(sweep_->visited(), 20u) << "they have their numbers again";
}

// Whatever happens between two sweeps: the same as when every cgroup is read.
TEST_F(UpdatedOnly, TheRecordsAreThoseOfAWholeSweep) {
  auto opened = BpfSweep::open({.root = top_->path(), .capacity = 1024, .updated_only = false});
  ASSERT_TRUE(opened) << opened.error().what;
  BpfSweep& whole = **opened;
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < 8; ++i)
    workers.push_back(std::make_unique<Worker>(*children_[i * 31]));
  std::vector<std::unique_ptr<TestCgroup>> born;
  for (int round = 0; round < 400; ++round) {
    const Worker& worker = *workers[random() % workers.size()];
    switch (random() % 16) {
      case 0:
        born.push_back(std::make_unique<TestCgroup>(*children_[random() % kCgroups],
                                                    "born" + std::to_string(round)));
        break;
      case 1:
        if (!born.empty()) born.pop_back();
        break;
      case 2:
        std::ofstream(children_[random() % kCgroups]->path() + "/cgroup.procs") << worker.pid();
        break;
      case 3:
        break;
      default:
        worker.work();
    }
    ASSERT_TRUE(sweep_->sweep() && whole.sweep());
    const auto ours = sweep_->records(), theirs = whole.records();
    ASSERT_EQ(ours.size(), theirs.size()) << round;
    for (std::size_t i = 1; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].id, theirs[i].id) << round << " at " << i;
      ASSERT_EQ(ours[i].parent_id, theirs[i].parent_id) << round << " at " << i;
      ASSERT_EQ(ours[i].populated, theirs[i].populated) << round << " at " << i;
      ASSERT_EQ(ours[i].cpu_usage_ns, theirs[i].cpu_usage_ns) << round << " at " << i;
    }
  }
}

// What those who keep a copy go by.
TEST_F(Sweep, MarksTellWhatAPassWrote) {
  TestCgroup parent("marks");
  TestCgroup asleep(parent, "asleep");
  TestCgroup busy(parent, "busy");
  asleep.spawn_sleeping_child();
  busy.spawn(burn);
  pass_time(50);
  auto resting = BpfSweep::open({.root = parent.path(), .capacity = 16});
  ASSERT_TRUE(resting) << resting.error().what;
  (*resting)->idle_read_period(4);
  (*resting)->set_compare_usage(false);
  ASSERT_TRUE((*resting)->sweep());
  EXPECT_FALSE((*resting)->same_cgroups()) << "no cgroup was known before";
  std::vector<hr_record> copy((*resting)->records().begin(), (*resting)->records().end());
  std::uint32_t seen = (*resting)->change_stamps().pass;
  unsigned left_alone = 0;
  for (int i = 0; i < 9; ++i) {
    pass_time(20);
    (*resting)->set_compare_usage(i % 2);
    ASSERT_TRUE((*resting)->sweep());
    EXPECT_TRUE((*resting)->same_cgroups());
    const auto change_stamps = (*resting)->change_stamps();
    EXPECT_EQ(change_stamps.pass, seen + 1);
    ASSERT_EQ(change_stamps.of_records.size(), 3u);
    for (std::size_t at = 0; at < 3; ++at)
      if (change_stamps.of_records[at].pass > seen)
        copy[at] = (*resting)->records()[at];
      else
        ++left_alone;
    seen = change_stamps.pass;
    EXPECT_EQ(std::memcmp(copy.data(), (*resting)->records().data(), 3 * sizeof(hr_record)), 0);
  }
  EXPECT_GE(left_alone, 5u);

  // One more at the end, and one less: the others have kept their places.
  TestCgroup born(parent, "born");
  ASSERT_TRUE((*resting)->sweep());
  EXPECT_FALSE((*resting)->same_cgroups());
  ASSERT_TRUE((*resting)->sweep());
  EXPECT_TRUE((*resting)->same_cgroups());
  born.remove();
  ASSERT_TRUE((*resting)->sweep());
  EXPECT_FALSE((*resting)->same_cgroups());
  // Another of the same name is another.
  TestCgroup again(parent, "born");
  ASSERT_TRUE((*resting)->sweep());
  EXPECT_FALSE((*resting)->same_cgroups());
}

TEST_F(Sweep, LibbpfSaysWhyALoadFails) {
  auto failed = BpfSweep::open({.root = root_, .capacity = 0xffffffff});
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().what.starts_with("load the sweep program: ")) << failed.error().what;
}

TEST_F(Sweep, BestSourceTakesBpfAndFillsTheRootFromFiles) {
  auto best = BestSource::open({.root = root_, .capacity = 4096});
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->name(), "bpf");
  auto swept = (*best)->sweep();
  ASSERT_TRUE(swept);
  EXPECT_TRUE(swept->front().valid & HR_CPU);
  EXPECT_LT(swept->front().cpu_usage_ns, HR_NO_LIMIT);
  const std::uint64_t before = daemon::thread_allocation_count();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE((*best)->sweep());
  EXPECT_EQ(daemon::thread_allocation_count() - before, 0u);
}

TEST_F(Sweep, HybridServesADroppedGroupFromFiles) {
  TestCgroup cgroup("hybrid");
  auto best = BestSource::open({.root = root_, .capacity = 4096, .force_files = HR_CPU});
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->name(), "hybrid");
  EXPECT_EQ((*best)->group_sources()[4], "files");
  EXPECT_EQ((*best)->group_sources()[6], "bpf");
  TestCgroup born(cgroup, "later");
  born.spawn_sleeping_child();
  auto swept = (*best)->sweep();
  ASSERT_TRUE(swept);
  const auto record = std::find_if(swept->begin(), swept->end(), [&](const hr_record& each) {
    return each.id == born.id().value;
  });
  ASSERT_NE(record, swept->end());
  EXPECT_TRUE(record->valid & HR_CPU);
  EXPECT_EQ(record->populated, 1u);
}

TEST_F(Sweep, InventoryByHandle) {
  TestCgroup parent("inventory");
  auto inventory = CgroupInventory::open(root_);
  ASSERT_TRUE(inventory);
  CgroupId gone;
  {
    TestCgroup child(parent, "child of it");
    gone = child.id();
    EXPECT_TRUE(inventory->update(*sweep_->sweep()));
    const KnownCgroup* known = inventory->find(child.id());
    ASSERT_TRUE(known);
    EXPECT_EQ(root_ + known->path, child.path());
    EXPECT_EQ(known->parent, parent.id());
    EXPECT_FALSE(inventory->update(*sweep_->sweep())) << "nothing changed";
  }
  EXPECT_TRUE(inventory->update(*sweep_->sweep()));
  EXPECT_EQ(inventory->find(gone), nullptr);
  EXPECT_TRUE(inventory->find(parent.id()));
}

TEST_F(Sweep, FilesSeeADeathWithoutTheCountChanging) {
  TestCgroup parent("swap");
  auto files = CgroupfsSource::open({.root = parent.path(), .root_is_real = false});
  ASSERT_TRUE(files);
  auto old = std::make_unique<TestCgroup>(parent, "old");
  ASSERT_EQ((*files)->sweep()->size(), 2u);
  old.reset();
  TestCgroup fresh(parent, "new");  // nr_descendants is 1 again
  EXPECT_EQ((*files)->sweep()->size(), 1u) << "the old one answers ENODEV";
  auto swept = (*files)->sweep();
  ASSERT_EQ(swept->size(), 2u);
  EXPECT_EQ((*swept)[1].id, fresh.id().value);
}

}  // namespace
}  // namespace headroom::observe
