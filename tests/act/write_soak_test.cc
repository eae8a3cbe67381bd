// SPDX-License-Identifier: Apache-2.0
// Whatever happens to cgroups between a look and a write, only the cgroup that was looked at is
// written.
//
// A second thread removes cgroups and makes new ones at the same paths, also between the moment
// that an original value is saved and the write. Every value that is not the one a cgroup was made
// with must be of the cgroup that the round is about. Each value is read again before its cgroup
// is removed, so that none is missed.
//
//   make soak-identity ROUNDS=10000 SEED=1
#include "act/cpus/cpuset_writer.h"
#include "act/limits/memory_high_overrides.h"
#include "base/cgroup_directory.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPaths = 3;
constexpr int kShortSoak = 200;
constexpr Bytes kHigh{64 << 20};

struct SettingFile {
  const char* name;
  std::string_view original;
  // A plain file keeps the rest of what was longer.
  bool is_original(std::string_view value) const {
    return original.empty() ? value.empty() : value.starts_with(original);
  }
};
constexpr std::array<SettingFile, 2> kFiles{{{"memory.high", "max"}, {"cpuset.cpus", ""}}};

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// Cgroups that come and go at a few paths: real ones, or directories with the same files.
class Paths {
 public:
  Paths(std::string root, bool are_real) : root_(std::move(root)), are_real_(are_real) {
    for (std::size_t i = 0; i < kPaths; ++i)
      make(path(i));
  }
  ~Paths() {
    for (std::size_t i = 0; i < kPaths; ++i)
      remove(path(i));
  }
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  const std::string& root() const { return root_; }
  static std::string path(std::size_t i) { return "/pod" + std::to_string(i); }
  unsigned made() const { return made_; }

  void replace(std::size_t i) {
    const std::lock_guard lock(mutex_);
    remove(path(i));
    make(path(i));
  }
  // From now on a write may be of this cgroup alone.
  void expect_writes_to(CgroupId cgroup) {
    const std::lock_guard lock(mutex_);
    written_ = cgroup;
  }
  void check_all() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kPaths; ++i)
      check(path(i));
  }

 private:
  void make(const std::string& path) {
    ASSERT_EQ(::mkdir((root_ + path).c_str(), 0755), 0) << path;
    ++made_;
    if (!are_real_)
      for (const SettingFile& file : kFiles)
        std::ofstream(root_ + path + "/" + file.name) << file.original << '\n';
  }

  void check(const std::string& path) const {
    const auto cgroup = cgroup_id_at(root_ + path);
    if (!cgroup || *cgroup == written_) return;
    for (const SettingFile& file : kFiles) {
      std::string value;
      std::getline(std::ifstream(root_ + path + "/" + file.name), value);
      EXPECT_TRUE(file.is_original(value))
          << file.name << " of cgroup " << cgroup->value << " is " << value
          << ", written to cgroup " << written_.value << ", which had its path";
    }
  }

  void remove(const std::string& path) const {
    check(path);
    if (!are_real_) {
      fs::remove_all(root_ + path);
      return;
    }
    for (int i = 0; i < 2000 && ::rmdir((root_ + path).c_str()) != 0 && errno == EBUSY; ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  const std::string root_;
  const bool are_real_;
  std::mutex mutex_;
  CgroupId written_{};
  unsigned made_ = 0;
};

// One look at a cgroup, then writes of both files and of the original values, with time for changes
// before, between and after.
class WriteRounds {
 public:
  WriteRounds(Paths& paths, unsigned seed) : paths_(paths), random_(seed) {}

  void run() {
    at_ = random_() % kPaths;
    const std::string path = Paths::path(at_);
    const Fd directory(::open((paths_.root() + path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto cgroup = directory ? cgroup_id_of(directory.get()) : std::nullopt;
    if (!cgroup) return;
    paths_.expect_writes_to(*cgroup);
    disturb();
    const int error = overrides_.override_high(*cgroup, directory.get(), kHigh);
    ++(error == 0 ? done : gone);
    EXPECT_TRUE(error == 0 || error == ENOENT || error == ENODEV) << error;
    disturb();
    write_cpus({.path = path, .id = *cgroup});
    disturb();
    EXPECT_EQ(overrides_.restore(*cgroup), 0);
    EXPECT_EQ(overrides_.held(), 0u);
  }

  int done = 0, gone = 0;

 private:
  void write_cpus(const SeenCgroup& cgroup) {
    const auto written = writer_.write(cgroup, CpuSet{0});
    ++(written ? done : gone);
    const int error = written ? 0 : written.error().code;
    EXPECT_TRUE(error == 0 || error == ENOENT || error == ENODEV) << written.error().what;
    paths_.check_all();
    disturb();
    (void)writer_.write(cgroup, {});
  }

  // Gives the other thread time, or replaces the cgroup of this round.
  void disturb() {
    if (random_() % 8 == 0)
      paths_.replace(at_);
    else
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
  }

  Paths& paths_;
  std::mt19937 random_;
  std::size_t at_ = 0;
  CpusetWriter writer_{paths_.root()};
  MemoryHighOverrides overrides_{paths_.root(), [this](const MemoryHighOverrides::Found&) {
                                   disturb();
                                   return Result<>();
                                 }};
};

// A cgroup whose children have both files; null: this machine has none.
std::unique_ptr<test::TestCgroup> real_root() {
  const auto mount = test::writable_cgroup2();
  if (!mount) return nullptr;
  const auto enable = [](const std::string& cgroup) {
    for (const char* controller : {"+memory", "+cpuset"})
      std::ofstream(cgroup + "/cgroup.subtree_control") << controller << std::flush;
  };
  enable(*mount);
  auto root = std::make_unique<test::TestCgroup>("writes");
  enable(root->path());
  const test::TestCgroup child(*root, "child");
  for (const SettingFile& file : kFiles)
    if (::access((child.path() + "/" + file.name).c_str(), W_OK) != 0) return nullptr;
  return root;
}

// Its numbers of directories are not used again soon, as a cgroup's never are.
struct MemoryDirectory {
  MemoryDirectory() { EXPECT_NE(::mkdtemp(path.data()), nullptr) << path; }
  ~MemoryDirectory() { fs::remove_all(path); }
  MemoryDirectory(const MemoryDirectory&) = delete;
  MemoryDirectory& operator=(const MemoryDirectory&) = delete;
  std::string path = "/dev/shm/headroom-test-XXXXXX";
};

TEST(IdentitySoak, NothingButTheCgroupThatWasLookedAtIsWritten) {
  const int rounds = number_of("HEADROOM_SOAK_ROUNDS", kShortSoak);
  const auto seed = static_cast<unsigned>(number_of("HEADROOM_SOAK_SEED", 1));
  const auto cgroup = real_root();
  const MemoryDirectory directory;
  Paths paths(cgroup ? cgroup->path() : directory.path, cgroup != nullptr);
  WriteRounds all(paths, seed);
  {
    const std::jthread churn([&paths, seed](const std::stop_token& stop) {
      std::mt19937 random(seed + 1);
      while (!stop.stop_requested()) {
        paths.replace(random() % kPaths);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      }
    });
    for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i)
      all.run();
  }
  std::printf("seed %u, %d rounds with %s: %d writes done, %d of a cgroup that was gone; %u made\n",
              seed, rounds, cgroup ? "cgroups" : "plain files, for want of the controllers",
              all.done, all.gone, paths.made());
  // Else the soak shows nothing.
  EXPECT_GT(all.done, rounds / 10);
  EXPECT_GT(all.gone, rounds / 10);
}

}  // namespace
}  // namespace headroom::act
