// SPDX-License-Identifier: Apache-2.0
// The CPU state on disk: whatever ends when, the file is the old one or the new one.
#include "act/cpus/cpu_checkpoint.h"
#include "config/temp_dir.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

const CpuState kOld{cpus("0-5"), {{"a", {{"c", cpus("6-7")}}}}};
const CpuState kNew{cpus("0-3"), {{"a", {{"c", cpus("6-7")}}}, {"b", {{"c", cpus("4-5")}}}}};

CpuState read(const std::filesystem::path& path) {
  const auto loaded = CpuStateFile(path).load();
  if (!loaded || !*loaded) {
    ADD_FAILURE() << (loaded ? "no file" : loaded.error().what);
    return {};
  }
  return (*loaded)->state;
}

TEST(CpuStateFile, IsReadBackUnchanged) {
  const test::TempDir dir;
  CpuStateFile file(dir.path() / "deeper" / "state");
  const auto none = file.load();
  ASSERT_TRUE(none) << none.error().what;
  EXPECT_FALSE(*none);
  ASSERT_TRUE(file.save("static", kNew));
  const auto loaded = file.load();
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ((*loaded)->policy, "static");
  EXPECT_EQ((*loaded)->state, kNew);
}

TEST(CpuStateFile, KeepsPodLevelCpus) {
  const test::TempDir dir;
  CpuState state = kNew;
  state.pod_entries["p"] = cpus("9");
  ASSERT_TRUE(CpuStateFile(dir.path() / "state").save("static", state));
  EXPECT_EQ(read(dir.path() / "state"), state);
}

// A process that ends at each step: before the rename the old file is there, after it the new one.
TEST(CpuStateFile, IsCompleteWheneverTheWriterIsKilled) {
  for (const WriteStep step : {WriteStep::kCreated, WriteStep::kHalfWritten, WriteStep::kWritten,
                               WriteStep::kSynced, WriteStep::kRenamed}) {
    const test::TempDir dir;
    const auto path = dir.path() / "state";
    ASSERT_TRUE(CpuStateFile(path).save("static", kOld));
    const pid_t child = ::fork();
    if (child == 0) {
      CpuStateFile file(path, [&](WriteStep reached) {
        if (reached == step) ::kill(::getpid(), SIGKILL);
      });
      [[maybe_unused]] const auto saved = file.save("static", kNew);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it did not get so far";
    EXPECT_EQ(read(path), step == WriteStep::kRenamed ? kNew : kOld);
    // Nor is what it left behind in the way of the next.
    ASSERT_TRUE(CpuStateFile(path).save("static", kNew));
    EXPECT_EQ(read(path), kNew);
  }
}

TEST(CpuStateFile, AFullDiskLeavesTheOldFileOnly) {
  const test::TempDir dir;
  const auto path = dir.path() / "state";
  ASSERT_TRUE(CpuStateFile(path).save("static", kOld));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 16, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  CpuStateFile file(path);
  const auto refused = file.save("static", kNew);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("write "), std::string::npos) << refused.error().what;
  EXPECT_EQ(read(path), kOld);
  EXPECT_FALSE(
      std::filesystem::exists(path.parent_path() / ("." + path.filename().string() + ".new")));
  // It is tried again, not taken for written.
  ASSERT_TRUE(file.save("static", kNew));
  EXPECT_EQ(read(path), kNew);
}

TEST(CpuStateFile, ADamagedFileIsReportedAndMoved) {
  const test::TempDir dir;
  const auto path = dir.write("state", "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-");
  const CpuStateFile file(path);
  const auto damaged = file.load();
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().what.find("not JSON"), std::string::npos) << damaged.error().what;
  ASSERT_TRUE(file.move_damaged_file());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(path.string() + ".damaged"));
}

}  // namespace
}  // namespace headroom::act
