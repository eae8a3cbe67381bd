// SPDX-License-Identifier: Apache-2.0
// Layers of running processes: a root that is an overlay, in a mount namespace of its own.
#include "base/file_io.h"
#include "config/temp_dir.h"
#include "observe/node/disk_meter.h"
#include "support/without_ptrace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TempDir;

// Its steps, by number; 0: it has what it needs, and waits to be ended.
int become_container(const std::string& place) {
  if (::unshare(CLONE_NEWNS) != 0) return 1;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 2;
  if (::mount("tmpfs", place.c_str(), "tmpfs", 0, nullptr) != 0) return 3;
  for (const char* name : {"/lower", "/upper", "/work", "/root"})
    if (::mkdir((place + name).c_str(), 0755) != 0) return 4;
  const std::string options =
      "lowerdir=" + place + "/lower,upperdir=" + place + "/upper,workdir=" + place + "/work";
  const std::string root = place + "/root";
  if (::mount("overlay", root.c_str(), "overlay", 0, options.c_str()) != 0) return 5;
  return ::chroot(root.c_str()) == 0 && ::chdir("/") == 0 ? 0 : 6;
}

// A process whose root is an overlay with its upper directory in PLACE.
class Container {
 public:
  explicit Container(const std::string& place) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    Fd read_end(ready[0]);
    Fd write_end(ready[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int step = become_container(place);
      const std::array<int, 2> answer{step, errno};
      (void)!::write(write_end.get(), answer.data(), sizeof answer);
      for (;;)
        ::pause();
    }
    std::array<int, 2> answer{-1, 0};
    EXPECT_EQ(::read(read_end.get(), answer.data(), sizeof answer), ssize_t{sizeof answer});
    EXPECT_EQ(answer[0], 0) << "step " << answer[0] << ": " << std::strerror(answer[1]);
  }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  ~Container() {
    if (pid_ <= 0) return;  // kill(-1) would be for every process of the machine
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_ = -1;
};

struct World {
  World() {
    for (const char* name : {"cgroup", "other", "a", "b"})
      std::filesystem::create_directory(dir.path() / name);
  }
  void runs_in(const std::string& cgroup, const std::string& pids) {
    dir.write(cgroup + "/cgroup.procs", pids);
  }
  std::string at(const std::string& name) const { return dir.path() / name; }
  TempDir dir;
};

using Layers = std::vector<WritableLayers::Layer>;

class WritableLayersTest : public testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount an overlay";
  }
};

TEST_F(WritableLayersTest, AreThoseOfTheProcessesThatRunNow) {
  World world;
  WritableLayers layers;
  const std::vector<std::string> cgroups{world.at("cgroup"), world.at("other")};
  {
    const Container first(world.at("a"));
    world.runs_in("cgroup", first.pid() + "\n1\n");
    EXPECT_EQ(layers.of(cgroups), (Layers{{world.at("cgroup"), world.at("a/upper")}}));
  }
  EXPECT_TRUE(layers.of(cgroups).empty()) << "it has ended";
  const Container again(world.at("a"));
  const Container beside(world.at("b"));
  world.runs_in("cgroup", beside.pid() + "\n");
  world.runs_in("other", again.pid() + "\n");
  EXPECT_EQ(layers.of(cgroups), (Layers{{world.at("cgroup"), world.at("b/upper")},
                                        {world.at("other"), world.at("a/upper")}}));
  EXPECT_EQ(layers.of({world.at("other")}), (Layers{{world.at("other"), world.at("a/upper")}}));
}

TEST_F(WritableLayersTest, OneRootSharedByTwoCgroupsIsReportedOnce) {
  World world;
  const Container container(world.at("a"));
  world.runs_in("cgroup", container.pid() + "\n");
  world.runs_in("other", container.pid() + "\n");
  WritableLayers layers;
  EXPECT_EQ(layers.of({world.at("cgroup"), world.at("other")}),
            (Layers{{world.at("cgroup"), world.at("a/upper")}}));
}

TEST_F(WritableLayersTest, OfOneThatHasLongBeenTheSameAreAskedForSeldom) {
  World world;
  WritableLayers layers;
  std::optional<Container> container(std::in_place, world.at("a"));
  world.runs_in("cgroup", container->pid() + "\n");
  const auto ask = [&] { return layers.of({world.at("cgroup")}); };
  for (int time = 0; time < 4; ++time)
    EXPECT_EQ(ask(), (Layers{{world.at("cgroup"), world.at("a/upper")}}));
  container.emplace(world.at("b"));
  world.runs_in("cgroup", container->pid() + "\n");
  int calls = 0;
  while (ask() == Layers{{world.at("cgroup"), world.at("a/upper")}})
    ASSERT_LT(++calls, 8) << "it must come up in the end";
  EXPECT_GE(calls, 1);
  EXPECT_EQ(ask(), (Layers{{world.at("cgroup"), world.at("b/upper")}}));
}

TEST_F(WritableLayersTest, AreFoundAfterALongRest) {
  World world;
  WritableLayers layers;
  const auto ask = [&] { return layers.of({world.at("cgroup")}); };
  for (int time = 0; time < 4; ++time)
    EXPECT_TRUE(ask().empty());
  const Container container(world.at("a"));
  world.runs_in("cgroup", container.pid() + "\n");
  int calls = 0;
  while (ask().empty())
    ASSERT_LT(++calls, 8) << "it must come up in the end";
}

// Without CAP_SYS_PTRACE /proc/PID/root of a process with other capabilities is hidden.
TEST_F(WritableLayersTest, AreFoundWithoutThePrivilegeToTrace) {
  World world;
  const Container container(world.at("a"));
  world.runs_in("cgroup", container.pid() + "\n");
  EXPECT_EQ(test::check_without_ptrace([&] {
              WritableLayers layers;
              const std::string root = "/proc/" + container.pid() + "/root";
              std::array<char, 2> link{};
              return ::readlink(root.c_str(), link.data(), link.size()) < 0 &&
                     layers.of({world.at("cgroup")}) ==
                         Layers{{world.at("cgroup"), world.at("a/upper")}};
            }),
            0);
}

TEST_F(WritableLayersTest, AreNoneWhereNothingOfItsOwnRuns) {
  World world;
  WritableLayers layers;
  for (const char* procs : {"0\n", "", "4294967295\n"}) {
    world.runs_in("cgroup", procs);
    EXPECT_TRUE(layers.of({world.at("cgroup"), world.at("nowhere")}).empty()) << procs;
  }
}

}  // namespace
}  // namespace headroom::observe
