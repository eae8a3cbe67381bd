// SPDX-License-Identifier: Apache-2.0
// Whatever happens to cgroups and pids between a sweep and a kill, only the chosen victim dies.
//
// A second thread removes cgroups and creates new ones under the same paths. At any moment between
// the sweep, the opening of the descriptors and the kill, a path or a pid may refer to something
// else. Every process that ends must have been ended by that thread,
// or must have belonged to the victim. The soak runs in a PID namespace of its own with a small
// pid_max (Linux 6.14 has one for each namespace), so that pids are reused quickly.
//
//   make soak-identity ROUNDS=10000 SEED=1
#include "act/host_actuator.h"
#include "base/process_stat.h"
#include "observe/cgroup/cgroup_inventory.h"
#include "support/test_cgroup.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPods = 6;
constexpr int kShortRounds = 40;
constexpr std::string_view kSmallPidMax = "400";

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

Instant no_clock() {
  return Instant(std::chrono::seconds(1));
}

void pause_for(std::chrono::microseconds time) {
  std::this_thread::sleep_for(time);
}

std::uint64_t inode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// A process that sleeps for ever, moved into the cgroup; -1: the cgroup is gone. Not by
// CLONE_INTO_CGROUP: Linux 6.18 kills such a child at once if the cgroup was ever killed before.
pid_t start_in(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0)
    for (;;)
      ::pause();
  const std::string pid = std::to_string(child);
  const Fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (procs && ::write(procs.get(), pid.data(), pid.size()) > 0) return child;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

// A process of the test: the cgroups that it was started in, innermost first.
struct Child {
  std::uint64_t container = 0;
  std::uint64_t pod = 0;
  ProcessIdentity identity{};
  bool ended_by_churn = false;
  bool ended_by_kill = false;
};

// The victim of one kill.
struct Target {
  std::uint64_t cgroup = 0;
  ProcessIdentity process{};  // of a kill of one process
  bool covers(const Child& child) const {
    if (process.pid != 0) return child.identity == process;
    return child.pod == cgroup || child.container == cgroup;
  }
};

// A few pods with a container each, whose cgroups and processes come and go.
class World {
 public:
  explicit World(const test::TestCgroup& root) {
    for (std::size_t i = 0; i < kPods; ++i) {
      paths_[i] = root.path() + "/pod" + std::to_string(i);
      make(paths_[i]);
    }
  }
  ~World() {
    for (const std::string& path : paths_)
      remove(path);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const std::array<std::string, kPods>& paths() const { return paths_; }
  std::uint64_t cgroups_made() const { return cgroups_made_; }
  std::uint64_t pids_reused() const { return pids_reused_; }

  // Removes a pod's cgroup and its processes; another comes under the same path.
  void replace(const std::string& path) {
    const std::lock_guard lock(changing_);
    remove(path);
    make(path);
  }

  void change_something(std::mt19937& random) {
    const std::string& path = paths_[random() % kPods];
    if (random() % 3 != 0) return replace(path);
    const std::lock_guard lock(changing_);
    start(path + "/container");
  }

  // Some process of the pod, by its identity; pid 0: there is none.
  ProcessIdentity some_process(std::uint64_t pod) {
    const std::lock_guard lock(mutex_);
    for (const auto& [pid, child] : children_)
      if (child.pod == pod && !child.ended_by_churn) return child.identity;
    return {};
  }

  void aim(const Target& target) {
    const std::lock_guard lock(mutex_);
    target_ = target;
    expected_.clear();
    for (const auto& [pid, child] : children_)
      if (target.covers(child)) expected_.insert(pid);
  }

  // Waits until every process that the victim had at aim() has ended, if the kill `was_done`.
  // Returns how many the kill ended.
  int settle(bool was_done) {
    const auto until = Clock::now() + std::chrono::seconds(10);
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        reap();
        if (!was_done || expected_.empty() || Clock::now() > until) {
          EXPECT_TRUE(!was_done || expected_.empty()) << "a victim still runs after its kill";
          // Those that were started between aim() and the kill die a moment later.
          for (auto& [pid, child] : children_)
            child.ended_by_kill |= target_.covers(child);
          target_ = {};
          return std::exchange(ended_by_kill_, 0);
        }
      }
      pause_for(std::chrono::microseconds(200));
    }
  }

 private:
  void make(const std::string& path) {
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0) << path;
    ASSERT_EQ(::mkdir((path + "/container").c_str(), 0755), 0) << path;
    ++cgroups_made_;
    start(path);
    start(path + "/container");
  }

  void start(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const pid_t pid = start_in(path);
    if (pid <= 0) return;
    const auto stat = process_stat(pid);
    const std::uint64_t own = inode_of(path), above = inode_of(path + "/..");
    const bool in_container = path.ends_with("/container");
    Child child{.container = in_container ? own : 0, .pod = in_container ? above : own};
    if (stat) child.identity = stat->name;
    if (!pids_.insert(pid).second) ++pids_reused_;
    children_[pid] = child;
  }

  void remove(const std::string& path) {
    const std::uint64_t pod = inode_of(path);
    for (bool left = true; left;) {
      {
        const std::lock_guard lock(mutex_);
        left = false;
        for (auto& [pid, child] : children_) {
          if (child.pod != pod) continue;
          left = true;
          child.ended_by_churn = true;
          ::kill(pid, SIGKILL);
        }
        reap();
      }
      if (left) pause_for(std::chrono::microseconds(50));
    }
    for (const std::string& directory : {path + "/container", path})
      for (int i = 0; i < 2000 && ::rmdir(directory.c_str()) != 0 && errno == EBUSY; ++i)
        pause_for(std::chrono::microseconds(100));
  }

  // With the mutex held: until it is reaped here, the pid of a child is not used again.
  void reap() {
    for (auto at = children_.begin(); at != children_.end();) {
      int status = 0;
      if (::waitpid(at->first, &status, WNOHANG) != at->first) {
        ++at;
        continue;
      }
      const bool aimed_at = target_.covers(at->second);
      EXPECT_TRUE(at->second.ended_by_churn || at->second.ended_by_kill || aimed_at)
          << "process " << at->first << " of pod " << at->second.pod
          << " was killed, the victim is " << target_.cgroup << ", process " << target_.process.pid;
      if (aimed_at && !at->second.ended_by_churn) ++ended_by_kill_;
      expected_.erase(at->first);
      at = children_.erase(at);
    }
  }

  std::array<std::string, kPods> paths_;
  std::mutex changing_;  // the tree is changed by one thread at a time
  std::mutex mutex_;     // of what follows
  std::map<pid_t, Child> children_;
  std::set<pid_t> pids_, expected_;
  Target target_;
  int ended_by_kill_ = 0;
  std::uint64_t cgroups_made_ = 0, pids_reused_ = 0;
};

struct Counts {
  int done = 0, gone = 0, other = 0, ended = 0;
};

// One sweep, then one kill, with time for changes before, between and after.
class Rounds {
 public:
  Rounds(World& world, const test::TestCgroup& root, unsigned seed)
      : world_(world),
        root_(root),
        random_(seed),
        inventory_(observe::CgroupInventory::open(root.path()).value()),
        actuator_(
            [this](CgroupId id) {
              const observe::KnownCgroup* known = inventory_.find(id);
              return known ? known->directory.get() : -1;
            },
            &no_clock) {}

  void run(Counts& counts) {
    next_ = random_() % kPods;
    read_cgroups();
    disturb();
    inventory_.update(records_);
    disturb();
    const std::vector<PodReading> pods = read_pods();
    disturb();
    actuator_.update_kill_fds(pods);
    disturb();
    const PodReading& pod = pods[next_ % pods.size()];
    const Decision decision = choose(pod);
    world_.aim({.cgroup = decision.part.whole() ? pod.cgroup.value : decision.part.cgroup.value,
                .process = decision.part.process});
    disturb();
    const Outcome outcome = actuator_.act(decision);
    const bool done = outcome.result == Outcome::Result::kDone;
    ++(done ? counts.done : outcome.result == Outcome::Result::kGone ? counts.gone : counts.other);
    counts.ended += world_.settle(done);
  }

 private:
  // Gives the other thread time, or replaces the pod that is to be killed.
  void disturb() {
    if (random_() % 8 == 0)
      world_.replace(world_.paths()[next_]);
    else
      pause_for(std::chrono::microseconds(random_() % 300));
  }

  void add_record(std::uint64_t id, std::uint64_t parent) {
    if (id == 0) return;
    hr_record record{};
    record.id = id;
    record.parent_id = parent;
    records_.push_back(record);
  }

  void read_cgroups() {
    records_.clear();
    add_record(root_.id().value, 0);
    for (const std::string& path : world_.paths()) {
      const std::uint64_t pod = inode_of(path);
      add_record(pod, root_.id().value);
      if (pod) add_record(inode_of(path + "/container"), pod);
    }
  }

  std::vector<PodReading> read_pods() {
    std::vector<PodReading> pods;
    parts_.assign(records_.size(), {});
    for (std::size_t i = 1; i < records_.size(); ++i) {
      if (records_[i].parent_id != root_.id().value) {
        if (!pods.empty()) parts_[i - 1].parts = {{.cgroup = CgroupId{records_[i].id}}};
        continue;
      }
      const ProcessIdentity process = world_.some_process(records_[i].id);
      if (process.pid != 0)
        parts_[i].largest =
            ProcessReading{.name = process, .cgroup = CgroupId{records_[i].id}, .held = {}};
      pods.push_back({.pod = std::make_shared<Pod>(),
                      .cgroup = CgroupId{records_[i].id},
                      .record = nullptr,
                      .memory_request = {},
                      .critical = false,
                      .parts = &parts_[i]});
    }
    return pods;
  }

  Decision choose(const PodReading& pod) {
    Decision decision;
    decision.act = Act::kKill;
    decision.cgroup = pod.cgroup;
    decision.pod = pod.pod;
    const auto& parts = pod.parts->parts;
    const unsigned unit = random_() % 3;
    if (unit == 1 && !parts.empty())
      decision.part = {.unit = EvictionUnit::kContainer, .cgroup = parts.front().cgroup};
    if (unit == 2 && pod.parts->largest)
      decision.part = {.unit = EvictionUnit::kProcess,
                       .cgroup = pod.cgroup,
                       .process = pod.parts->largest->name};
    return decision;
  }

  World& world_;
  const test::TestCgroup& root_;
  std::mt19937 random_;
  std::size_t next_ = 0;  // index of the path whose pod is to be killed
  std::vector<hr_record> records_;
  std::vector<PodParts> parts_;
  observe::CgroupInventory inventory_;
  HostActuator actuator_;
};

// `name`: of the cgroup, unique outside of the PID namespace too.
void soak(const std::string& name, int rounds, unsigned seed) {
  const test::TestCgroup root(name);
  World world(root);
  Counts counts;
  {
    const std::jthread churn([&world, seed](const std::stop_token& stop) {
      std::mt19937 random(seed + 1);
      while (!stop.stop_requested()) {
        world.change_something(random);
        pause_for(std::chrono::microseconds(random() % 500));
      }
    });
    Rounds all(world, root, seed);
    for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i)
      all.run(counts);
  }
  std::printf(
      "seed %u, %d rounds: %d kills done, %d of a victim that was gone, %d refused; they ended %d "
      "processes; %llu cgroups were made, %llu pids were reused\n",
      seed, rounds, counts.done, counts.gone, counts.other, counts.ended,
      static_cast<unsigned long long>(world.cgroups_made()),
      static_cast<unsigned long long>(world.pids_reused()));
  // Else the soak shows nothing.
  EXPECT_GT(counts.done, rounds / 10);
  EXPECT_GT(counts.gone + counts.other, rounds / 50);
  EXPECT_GT(counts.ended, rounds / 10);
  EXPECT_GT(world.cgroups_made(), static_cast<unsigned>(rounds / 10));
}

// Since Linux 6.14; before, the limit is that of the whole machine and is left alone.
bool pid_max_is_per_namespace() {
  utsname kernel{};
  int major = 0, minor = 0;
  return ::uname(&kernel) == 0 && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 14));
}

// The first process of a PID namespace with its own /proc and a small pid_max.
[[noreturn]] void soak_in_namespace(const std::string& name, int rounds, unsigned seed) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", 0, nullptr) != 0)
    ::_exit(2);
  if (pid_max_is_per_namespace()) std::ofstream("/proc/sys/kernel/pid_max") << kSmallPidMax;
  soak(name, rounds, seed);
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(IdentitySoak, NothingButTheVictimIsKilled) {
  if (!test::writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  const int rounds = number_from("HEADROOM_SOAK_ROUNDS", kShortRounds);
  const auto seed = static_cast<unsigned>(number_from("HEADROOM_SOAK_SEED", 1));
  const std::string name = "identity-" + std::to_string(::getpid());
  clone_args how{};
  how.flags = CLONE_NEWPID;
  how.exit_signal = SIGCHLD;
  std::fflush(nullptr);
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
  if (child == 0) soak_in_namespace(name, rounds, seed);
  if (child < 0) GTEST_SKIP() << "needs a PID namespace of its own: " << std::strerror(errno);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "needs a /proc of its own";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see above; the same seed gives the same choices: " << seed;
}

}  // namespace
}  // namespace headroom::act
