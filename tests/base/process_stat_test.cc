// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include "base/file_io.h"
#include "base/human_readable.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

// A child that calls itself so, until it is killed.
class Child {
 public:
  explicit Child(const char* name) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_NAME, name);
      (void)!::write(ready[1], "r", 1);
      for (;;)
        ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessStat, IsReadWhateverTheProcessCallsItself) {
  for (const char* name : {"plain", "a) R 1 (b", "(", "fifteen letters"}) {
    const Child child(name);
    const auto stat = process_stat(child.pid());
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(std::string(stat->comm.data()), name);
    EXPECT_EQ(stat->name.pid, child.pid());
    EXPECT_GT(stat->name.started, 0u);
    EXPECT_GT(stat->resident_pages, 0);
    EXPECT_FALSE(stat->zombie);
  }
}

TEST(ProcessStat, ANameThatIsNoTextIsCleaned) {
  const Child child("\xff\x1e\x1b[31m\xe2\x80\xae");
  const auto stat = process_stat(child.pid());
  ASSERT_TRUE(stat);
  const std::string name(stat->comm.data());
  EXPECT_TRUE(name.starts_with("?")) << name;
  EXPECT_EQ(printable(name), name);
}

TEST(ProcessStat, OfAnAbsentProcessNothingIsKnown) {
  EXPECT_FALSE(process_stat(0x3fffffff));
  EXPECT_EQ(open_process({0x3fffffff, 1}), -1);
}

TEST(ProcessStat, AnotherOfTheSamePidIsNotOpened) {
  const Child child("one");
  const ProcessIdentity name = process_stat(child.pid())->name;
  EXPECT_TRUE(Fd(open_process(name)));
  EXPECT_FALSE(Fd(open_process({name.pid, name.started + 1})));
}

TEST(ProcessStat, AZombieIsGone) {
  const Child child("ending");
  const ProcessIdentity name = process_stat(child.pid())->name;
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  ASSERT_TRUE(process_stat(child.pid()));
  EXPECT_TRUE(process_stat(child.pid())->zombie);
  EXPECT_EQ(open_process(name), -1);
}

}  // namespace
}  // namespace headroom
