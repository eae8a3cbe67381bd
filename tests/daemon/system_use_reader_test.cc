// SPDX-License-Identifier: Apache-2.0
// Which cgroups of a sweep a recording keeps beside the pods, and that it keeps them.
#include "daemon/turn/system_use_reader.h"

#include "daemon/turn/turn_recorder.h"

#include <headroom/cgroup_record.h>

#include <fcntl.h>
#include <unistd.h>

#include <map>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using recording::SystemCgroup;
using recording::SystemRole;
using namespace std::chrono_literals;

class Names final : public report::CgroupNames {
 public:
  std::string_view path_of(CgroupId id) const override {
    const auto found = paths.find(id.value);
    return found == paths.end() ? std::string_view() : std::string_view(found->second);
  }
  std::uint64_t started_ns(CgroupId) const override { return HR_UNKNOWN; }
  std::map<std::uint64_t, std::string> paths;
};

class SystemUseReaderTest : public testing::Test {
 protected:
  SystemUseReaderTest() {
    add(1, 0, "/");
    add(2, 1, "/kubepods.slice");
    add(3, 2, "/kubepods.slice/kubepods-pod7.slice");
    add(4, 1, "/system.slice");
    add(5, 4, "/system.slice/containerd.service");
    add(6, 4, "/system.slice/kubelet.service");
    add(7, 4, "/system.slice/ssh.service");
    add(8, 1, "/user.slice");
    add(9, 1, "/gone.slice");
    names.paths.erase(9);
    config.reserved.kube.amounts.memory = 512_MiB;
    config.reserved.system.amounts.cpu = MilliCpu{250};
  }
  void add(std::uint64_t id, std::uint64_t parent, const char* path) {
    records.push_back(unknown_record(id, parent));
    records.back().memory_usage = id * 100;
    names.paths[id] = path;
  }
  Snapshot snapshot(Duration at, std::uint32_t order = 1) {
    Snapshot made;
    made.at = Instant(1h + at);
    made.cgroups = records;
    made.changes.order = order;
    made.unaccounted_memory = 3_MiB;
    return made;
  }
  static std::string text_of(const recording::SystemUse& use) {
    std::string text;
    for (const SystemCgroup& each : use.cgroups)
      text += each.path + "=" + std::to_string(static_cast<int>(each.role)) + ":" +
              std::to_string(each.record.memory_usage) + " ";
    return text;
  }

  Names names;
  config::Config config;
  std::vector<hr_record> records;
};

TEST_F(SystemUseReaderTest, TheRootItsChildrenAndTheKubeletsServices) {
  SystemUseReader reader(names, config);
  const recording::SystemUse* use = reader.read(snapshot(0s));
  ASSERT_TRUE(use);
  EXPECT_EQ(text_of(*use),
            "/=0:100 /kubepods.slice=1:200 /system.slice=3:400 "
            "/system.slice/containerd.service=2:500 /system.slice/kubelet.service=2:600 "
            "/user.slice=3:800 ");
  EXPECT_EQ(use->at, Instant(1h));
  EXPECT_EQ(use->unaccounted_memory, (3_MiB).count);
  EXPECT_EQ(use->reserves.kube.memory, (512_MiB).count);
  EXPECT_EQ(use->reserves.kube.milli_cpu, std::nullopt);
  EXPECT_EQ(use->reserves.system.milli_cpu, 250);
}

TEST_F(SystemUseReaderTest, ConfiguredCgroupsAreTheKubelets) {
  config.system_cgroups.kube_reserved = "/kube";
  config.pods_cgroup = "pods.slice";
  add(10, 1, "/kube.slice");
  add(11, 1, "/pods.slice");
  add(12, 4, "/system.slice/k3s.service");
  SystemUseReader reader(names, config);
  const std::string text = text_of(*reader.read(snapshot(0s)));
  EXPECT_NE(text.find("/kube.slice=2:"), std::string::npos);
  EXPECT_NE(text.find("/pods.slice=1:"), std::string::npos);
  EXPECT_NE(text.find("/kubepods.slice=3:"), std::string::npos);
  EXPECT_NE(text.find("/system.slice/k3s.service=2:"), std::string::npos);
}

TEST_F(SystemUseReaderTest, OnceASecondAndOnlyOfASweep) {
  SystemUseReader reader(names, config);
  Snapshot node = snapshot(0s);
  node.cgroups.reset();
  EXPECT_FALSE(reader.read(node));
  EXPECT_TRUE(reader.read(snapshot(1ms)));
  EXPECT_FALSE(reader.read(snapshot(1s)));
  EXPECT_TRUE(reader.read(snapshot(1001ms)));
}

TEST_F(SystemUseReaderTest, AnotherSetOfCgroupsIsFoundAnew) {
  SystemUseReader reader(names, config);
  ASSERT_TRUE(reader.read(snapshot(0s)));
  records.erase(records.begin() + 4);  // containerd.service; it starts again with another id
  add(20, 4, "/system.slice/containerd.service");
  const std::string text = text_of(*reader.read(snapshot(1s, 2)));
  EXPECT_EQ(text.find("containerd.service=2:500"), std::string::npos);
  EXPECT_NE(text.find("containerd.service=2:2000"), std::string::npos);
  EXPECT_NE(text.find("kubelet.service=2:600"), std::string::npos);
}

TEST_F(SystemUseReaderTest, AnotherConfigurationAppliesAtOnce) {
  SystemUseReader reader(names, config);
  ASSERT_TRUE(reader.read(snapshot(0s)));
  config.reserved.kube.amounts.memory = 1_GiB;
  config.system_cgroups.kube_reserved = "/user.slice";
  reader.reconfigure(config);
  const recording::SystemUse* use = reader.read(snapshot(1s));
  EXPECT_EQ(use->reserves.kube.memory, (1_GiB).count);
  EXPECT_NE(text_of(*use).find("/user.slice=2:"), std::string::npos);
}

TEST_F(SystemUseReaderTest, ARecordingHasIt) {
  SystemUseReader reader(names, config);
  TurnRecorder recorder(Policy{}, &reader);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd from(ends[0]);
  ASSERT_TRUE(recorder.start(Fd(ends[1]), 10s));
  Verdict verdict;
  for (Duration at = 0s; at <= 10s; at += 500ms) {
    for (hr_record& record : records)
      record.memory_usage += 4096;
    recorder.record_turn(snapshot(at), verdict, {});
  }
  std::string bytes;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(from.get(), buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<std::size_t>(n));
  auto tape = recording::TapeReader::open(bytes);
  ASSERT_TRUE(tape);
  std::size_t count = 0;
  while (true) {
    const auto frame = tape->next();
    ASSERT_TRUE(frame) << frame.error().what;
    if (!*frame) break;
    const auto* use = std::get_if<recording::SystemUse>(*frame);
    if (!use) continue;
    ++count;
    ASSERT_EQ(use->cgroups.size(), 6u);
    EXPECT_EQ(use->cgroups[1].path, "/kubepods.slice");
    EXPECT_EQ(use->cgroups[1].role, SystemRole::kPods);
    EXPECT_EQ(use->cgroups[1].record.memory_usage, 200 + 4096 * (2 * count + 1));
    EXPECT_EQ(use->unaccounted_memory, (3_MiB).count);
    EXPECT_EQ(use->reserves.system.milli_cpu, 250);
    EXPECT_EQ(use->at, Instant(1h + std::chrono::seconds(count)));
  }
  EXPECT_EQ(count, 9u) << "not of the first turn, which begins the recording, nor of the last";
  EXPECT_FALSE(tape->cut_short());
}

}  // namespace
}  // namespace headroom::daemon
