// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/eviction_state.h"
#include "report/eviction/messages.h"
#include "support/story.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using test::at_ms;
namespace fs = std::filesystem;

class VictimsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
  }
  void TearDown() override { fs::remove_all(directory); }

  static Victim victim(const std::string& name, Victim::Phase phase) {
    auto pod = std::make_shared<Pod>();
    pod->uid = "uid-" + name;
    pod->name = name;
    pod->pod_namespace = "team";
    pod->priority = 7;
    Victim victim;
    victim.pod = std::move(pod);
    victim.cgroup = CgroupId{1234};
    victim.phase = phase;
    victim.terminated_at = at_ms(1000);
    victim.deadline = at_ms(31'000);
    victim.held = 2_GiB;
    victim.memory_request = 64_MiB;
    victim.reason.signal = Signal::kMemoryAvailable;
    victim.reason.hard = false;
    victim.reason.threshold = 500;
    victim.reason.available = 400;
    victim.reason.first_crossed = at_ms(900);
    return victim;
  }
  fs::path file() const { return directory / "victims.json"; }

  fs::path directory;
};

TEST_F(VictimsFileTest, ATaintIsRestoredAsTheReason) {
  Victim saved = victim("guest", Victim::Phase::kTerminating);
  saved.reason.cause = Cause::kTaint;
  saved.reason.taint =
      std::make_shared<const Taint>(Taint{"dedicated", "gpu", TaintEffect::kNoExecute});
  ASSERT_TRUE(VictimsFile(directory).save({saved}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 1u);
  const Reason& back = loaded->front().reason;
  EXPECT_EQ(back.cause, Cause::kTaint);
  ASSERT_TRUE(back.taint);
  EXPECT_EQ(*back.taint, *saved.reason.taint);
}

TEST_F(VictimsFileTest, APartialEvictionIsRestored) {
  Victim saved = victim("family", Victim::Phase::kTerminating);
  saved.part = {.unit = EvictionUnit::kProcess,
                .cgroup = CgroupId{12},
                .process = {4711, std::uint64_t{1} << 40},
                .comm = {'j', 'a', 'v', 'a'}};
  Victim stuck = victim("stuck", Victim::Phase::kTerminating);
  stuck.reason.cause = Cause::kStuck;
  ASSERT_TRUE(VictimsFile(directory).save({saved, stuck}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ(loaded->at(0).part, saved.part);
  EXPECT_TRUE(loaded->at(1).part.whole());
  EXPECT_EQ(loaded->at(1).reason.cause, Cause::kStuck);
}

TEST_F(VictimsFileTest, SavedVictimsAreRestored) {
  const Victim saved = victim("deaf", Victim::Phase::kTerminating);
  ASSERT_TRUE(VictimsFile(directory).save({saved}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 1u);
  const Victim& back = loaded->front();
  EXPECT_EQ(back.pod->uid, saved.pod->uid);
  EXPECT_EQ(back.pod->pod_namespace, "team");
  EXPECT_EQ(back.pod->priority, 7);
  EXPECT_EQ(back.cgroup, saved.cgroup);
  EXPECT_EQ(back.phase, saved.phase);
  EXPECT_EQ(back.terminated_at, saved.terminated_at);
  EXPECT_EQ(back.deadline, saved.deadline);
  EXPECT_EQ(back.held, saved.held);
  EXPECT_EQ(back.memory_request, saved.memory_request);
  EXPECT_EQ(back.reason.threshold, 500);
  EXPECT_FALSE(back.reason.hard);
  EXPECT_EQ(back.reason.first_crossed, at_ms(900));
}

TEST_F(VictimsFileTest, RemainingStepsAreRestoredToo) {
  Victim saved = victim("db", Victim::Phase::kPreStop);
  saved.sigterm_due = at_ms(29'000);
  saved.reason.limit = StorageLimit::kEmptyDir;
  saved.reason.used = 77;
  Pod pod = *saved.pod;
  Volume data;
  data.name = "data";
  data.kind = Volume::Kind::kEmptyDir;
  Volume fast = data;
  fast.name = "fast";
  fast.in_memory = true;
  pod.volumes = {data, fast};
  saved.pod = std::make_shared<const Pod>(pod);
  Victim removing = saved;
  removing.cgroup = CgroupId{77};
  removing.phase = Victim::Phase::kRemoving;
  ASSERT_TRUE(VictimsFile(directory).save({saved, removing}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 2u);
  const Victim& back = loaded->front();
  EXPECT_EQ(back.phase, Victim::Phase::kPreStop);
  EXPECT_EQ(back.sigterm_due, at_ms(29'000));
  EXPECT_EQ(back.reason.limit, StorageLimit::kEmptyDir);
  EXPECT_EQ(back.reason.used, 77);
  EXPECT_EQ(back.pod->volumes, pod.volumes);
  EXPECT_EQ((*loaded)[1].phase, Victim::Phase::kKilled) << "the removal is begun anew";
}

// The message names the volume and its limit, which the pod and the reason hold.
TEST_F(VictimsFileTest, WhatALimitIsOnIsRestored) {
  Victim saved = victim("cache", Victim::Phase::kTerminating);
  saved.reason.limit = StorageLimit::kEmptyDir;
  saved.reason.subject = 1;
  saved.reason.threshold = 64 << 20;
  Pod pod = *saved.pod;
  pod.volumes = {{.name = "logs", .kind = Volume::Kind::kConfigMap},
                 {.name = "data", .kind = Volume::Kind::kEmptyDir}};
  pod.volumes[1].size_limit = Quantity::parse("64Mi").value();
  saved.pod = std::make_shared<const Pod>(pod);
  ASSERT_TRUE(VictimsFile(directory).save({saved}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 1u);
  const Victim& back = loaded->front();
  EXPECT_EQ(report::limit_message(back.reason, *back.pod),
            "Usage of EmptyDir volume \"data\" exceeds the limit \"64Mi\". ");
}

TEST_F(VictimsFileTest, AFileOfReleaseZeroPointOneIsRead) {
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  std::ofstream(file()) << R"({"boot_id": ")" << boot_id << R"(", "victims": [
    {"uid": "u", "name": "cache", "namespace": "team", "priority": 3, "cgroup": 9, "request": 5,
     "phase": 0, "terminated_at": 1000000, "killed_at": 0, "deadline": 31000000, "step_due": 0,
     "empty_dirs": ["data"], "held": 77,
     "reason": {"signal": "nodefs.available", "hard": true, "threshold": 67108864, "available": 1,
                "capacity": 2, "sampled_at": 3, "first_crossed": 4, "last_clear": 5, "limit": 1,
                "used": 6}}]})";
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded) << loaded.error().what;
  ASSERT_EQ(loaded->size(), 1u);
  const Victim& back = loaded->front();
  EXPECT_EQ(back.pod->name, "cache");
  EXPECT_EQ(back.deadline, at_ms(31));
  EXPECT_EQ(back.held, Bytes{77});
  EXPECT_EQ(back.reason.used, 6);
  EXPECT_EQ(report::limit_message(back.reason, *back.pod), "") << "which volume is not known";
}

TEST_F(VictimsFileTest, AVolumeWithoutItsLimitIsNamedWithTheThreshold) {
  Reason reason;
  reason.limit = StorageLimit::kEmptyDir;
  reason.threshold = 64 << 20;
  Pod pod;
  pod.volumes = {{.name = "data", .kind = Volume::Kind::kEmptyDir}};
  EXPECT_EQ(report::limit_message(reason, pod),
            "Usage of EmptyDir volume \"data\" exceeds the limit \"64Mi\". ");
}

TEST_F(VictimsFileTest, NoFileIsNoVictims) {
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->empty());
}

TEST_F(VictimsFileTest, VictimsOfAnotherBootAreIgnored) {
  std::ofstream(file()) << R"({"boot_id": "another", "victims": [{"uid": "x"}]})";
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->empty());
}

TEST_F(VictimsFileTest, ADamagedFileIsMovedAndReported) {
  std::ofstream(file()) << R"({"boot_id": "ha)";
  const auto loaded = VictimsFile(directory).load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("victims.json"), std::string::npos);
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_TRUE(fs::exists(directory / "victims.json.damaged"));
}

TEST_F(VictimsFileTest, UnchangedVictimsAreNotWrittenAgain) {
  VictimsFile victims(directory);
  const std::vector<Victim> one{victim("deaf", Victim::Phase::kTerminating)};
  ASSERT_TRUE(victims.save(one));
  fs::remove(file());
  ASSERT_TRUE(victims.save(one));
  EXPECT_FALSE(fs::exists(file())) << "the same victims: no write";
  ASSERT_TRUE(victims.save({victim("deaf", Victim::Phase::kKilled)}));
  EXPECT_TRUE(fs::exists(file())) << "another phase: written";
}

TEST_F(VictimsFileTest, DryRunVictimsAreNotSaved) {
  VictimsFile victims(directory);
  ASSERT_TRUE(victims.save(
      {victim("web", Victim::Phase::kTerminating), victim("hog", Victim::Phase::kDryRun)}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 1u);
  EXPECT_EQ(loaded->front().pod->name, "web");
}

TEST_F(VictimsFileTest, ANameThatIsNotUtf8IsSavedAndLoaded) {
  VictimsFile victims(directory);
  ASSERT_TRUE(victims.save({victim("web\xff\xfe", Victim::Phase::kTerminating)}));
  const auto loaded = VictimsFile(directory).load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->size(), 1u);
  EXPECT_EQ(loaded->front().pod->name, "web\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(VictimsFileTest, AFailedWriteIsAnErrorAndRetried) {
  VictimsFile victims(directory / "not-there");
  const std::vector<Victim> one{victim("deaf", Victim::Phase::kTerminating)};
  EXPECT_FALSE(victims.save(one));
  fs::create_directory(directory / "not-there");
  EXPECT_TRUE(victims.save(one));
  EXPECT_TRUE(fs::exists(directory / "not-there" / "victims.json"));
}

}  // namespace
}  // namespace headroom::daemon
