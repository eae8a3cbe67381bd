// SPDX-License-Identifier: Apache-2.0
// Manifests and cgroups joined: who is read, with what request, and which pointers stay.
#include "observe/pod/pod_registry.h"

#include "daemon/turn/allocation_count.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace literals;

const std::string kUid = "0f3c2a1b-1111-4222-8333-944445555666";
const std::string kStatic = "0123456789abcdef0123456789abcdef";

Pod manifest(const std::string& uid, Bytes request) {
  Pod pod;
  pod.uid = uid;
  pod.name = "web";
  Container container;
  container.name = "main";
  container.requests["memory"] = Quantity::of(request.count);
  pod.containers.push_back(container);
  return pod;
}

hr_record limits(hr_u64 min, hr_u64 low, hr_u64 max) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);
  record.valid = HR_MEMORY_LIMITS;
  record.memory_min = min;
  record.memory_low = low;
  record.memory_max = max;
  return record;
}

class Registry : public testing::Test {
 protected:
  PodRegistry registry{PodCgroupParser("kubepods")};
  std::map<CgroupId, hr_record> records;

  std::vector<PodReading> read() {
    const auto readings = registry.read([this](CgroupId id) -> const hr_record* {
      const auto found = records.find(id);
      return found == records.end() ? nullptr : &found->second;
    });
    return {readings.begin(), readings.end()};
  }
  PodReading only() {
    const auto readings = read();
    EXPECT_EQ(readings.size(), 1u);
    return readings.at(0);
  }
};

TEST_F(Registry, AManifestAndACgroupAreAPod) {
  registry.set_declared_pods({manifest(kUid, 64_MiB)});
  EXPECT_TRUE(registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid));
  records[{7}] = limits(0, 0, HR_NO_LIMIT);
  const PodReading reading = only();
  EXPECT_EQ(reading.pod->name, "web");
  EXPECT_EQ(reading.cgroup, CgroupId{7});
  EXPECT_EQ(reading.memory_request, 64_MiB);
  EXPECT_FALSE(reading.critical);
  EXPECT_EQ(reading.record, &records[{7}]);
}

TEST_F(Registry, TheOrderOfTheNewsDoesNotMatter) {
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  EXPECT_EQ(only().pod->source, PodSource::kCgroupTree);
  registry.set_declared_pods({manifest(kUid, 64_MiB)});
  EXPECT_EQ(only().pod->source, PodSource::kManifest);
  EXPECT_EQ(only().memory_request, 64_MiB);
}

TEST_F(Registry, WhatAKubeletSaidHoldsUntilTheCgroupIsGone) {
  registry.set_declared_pods({manifest(kUid, 64_MiB)}, {kUid});
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  registry.set_declared_pods({});
  EXPECT_EQ(only().pod->name, "web") << "a kubelet that was just restarted knows no pods";
  EXPECT_EQ(only().memory_request, 64_MiB);
  registry.set_declared_pods({manifest(kUid, 32_MiB)}, {kUid});
  EXPECT_EQ(only().memory_request, 32_MiB);
  registry.gone({7});
  registry.set_declared_pods({});
  registry.add_cgroup({8}, "/kubepods/burstable/pod" + kUid);
  EXPECT_EQ(only().pod->source, PodSource::kCgroupTree);
}

TEST_F(Registry, WhatAPersonTookAwayIsGone) {
  registry.set_declared_pods({manifest(kUid, 64_MiB)});
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  registry.set_declared_pods({});
  EXPECT_EQ(only().pod->source, PodSource::kCgroupTree);
}

std::string systemd_path(std::string uid) {
  std::ranges::replace(uid, '-', '_');
  return "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid + ".slice";
}

// As the kubelet of 1.20 makes them on cgroup v2 with the systemd driver.
TEST_F(Registry, OfTwoCgroupsOfAPodTheOneWithProcessesIsShown) {
  registry.set_declared_pods({manifest(kUid, 64_MiB)});
  const auto set_populated = [this](hr_u64 id, hr_u32 populated) {
    records[{id}] = limits(0, 0, HR_NO_LIMIT);
    records[{id}].populated = populated;
  };
  registry.add_cgroup({7}, systemd_path(kUid));
  registry.add_cgroup({8}, "/kubepods/besteffort/pod" + kUid);
  set_populated(7, 0);
  set_populated(8, 0);
  EXPECT_EQ(only().cgroup, CgroupId{7}) << "the oldest while no process runs";
  EXPECT_EQ(registry.manifest_counts().with_manifest, 1u);
  set_populated(8, 1);
  EXPECT_EQ(only().cgroup, CgroupId{8});
  set_populated(7, 1);
  EXPECT_EQ(read().size(), 2u) << "a driver that was changed";
  set_populated(8, 0);
  EXPECT_EQ(only().cgroup, CgroupId{7});
  records.erase({8});
  EXPECT_EQ(read().size(), 2u) << "not known to be empty";
  registry.gone({7});
  EXPECT_EQ(only().cgroup, CgroupId{8});
  registry.gone({8});
  EXPECT_TRUE(read().empty());
}

TEST_F(Registry, OtherCgroupsAreNoneOfOurs) {
  EXPECT_FALSE(registry.add_cgroup({1}, "/kubepods"));
  EXPECT_FALSE(registry.add_cgroup({2}, "/kubepods/burstable"));
  EXPECT_FALSE(registry.add_cgroup({3}, "/kubepods/burstable/pod" + kUid + "/web"));
  EXPECT_FALSE(registry.add_cgroup({4}, "/system.slice"));
  EXPECT_TRUE(read().empty());
}

TEST_F(Registry, ACgroupAloneIsAPodNamedAfterItsUid) {
  registry.add_cgroup({7}, "/kubepods/besteffort/pod" + kUid);
  const PodReading reading = only();
  EXPECT_EQ(reading.pod->name, "pod" + kUid);
  EXPECT_EQ(reading.pod->uid, kUid);
  EXPECT_EQ(reading.pod->declared_qos, QosClass::kBestEffort);
  EXPECT_EQ(reading.memory_request, 0_B);
  EXPECT_EQ(reading.record, nullptr);
  EXPECT_FALSE(reading.critical);
}

TEST_F(Registry, ACgroupAloneOfAStaticPodIsCritical) {
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kStatic);
  EXPECT_TRUE(only().pod->is_static);
  EXPECT_TRUE(only().critical);
}

struct Learnt {
  const char* name;
  const char* tier;
  hr_record record;
  Bytes request;
};

TEST_F(Registry, ACgroupAlonesRequestIsItsProtection) {
  const Learnt rows[] = {
      {"memory.min", "burstable/", limits(32 << 20, 8 << 20, HR_NO_LIMIT), 32_MiB},
      {"memory.low without min", "burstable/", limits(0, 8 << 20, HR_NO_LIMIT), 8_MiB},
      {"neither", "burstable/", limits(0, 0, 64 << 20), 0_B},
      {"the limit of a Guaranteed pod", "", limits(0, 0, 64 << 20), 64_MiB},
      {"all there is", "burstable/", limits(HR_NO_LIMIT, 0, HR_NO_LIMIT),
       Bytes{std::numeric_limits<std::int64_t>::max()}},
  };
  std::uint64_t id = 1;
  for (const Learnt& row : rows) {
    registry.add_cgroup({id}, std::string("/kubepods/") + row.tier + "pod" + kUid);
    records[{id}] = row.record;
    EXPECT_EQ(only().memory_request, row.request) << row.name;
    registry.gone({id++});
  }
}

TEST_F(Registry, LimitsThatCannotBeReadAreStillWhatTheyWere) {
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  records[{7}] = limits(32 << 20, 0, 64 << 20);
  const PodReading before = only();
  records[{7}].valid = 0;
  EXPECT_EQ(only().pod, before.pod);
  records.clear();
  EXPECT_EQ(only().memory_request, 32_MiB);
  EXPECT_EQ(only().pod, before.pod);
}

TEST_F(Registry, AManifestsRequestIsNotTheTreesToSay) {
  registry.set_declared_pods({manifest(kUid, 64_MiB)});
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  records[{7}] = limits(1 << 20, 0, HR_NO_LIMIT);
  EXPECT_EQ(only().memory_request, 64_MiB);
  // Once the manifest goes, what the tree said meanwhile is known.
  registry.set_declared_pods({});
  EXPECT_EQ(only().pod->source, PodSource::kCgroupTree);
  EXPECT_EQ(only().memory_request, 1_MiB);
}

TEST_F(Registry, AReloadKeepsUnchangedPods) {
  registry.set_declared_pods({manifest(kUid, 64_MiB), manifest("b", 1_MiB)});
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  registry.add_cgroup({8}, "/kubepods/burstable/podb");
  registry.add_cgroup({9}, "/kubepods/burstable/podc");
  const auto before = read();
  registry.set_declared_pods({manifest("b", 2_MiB), manifest(kUid, 64_MiB)});
  const auto after = read();
  EXPECT_EQ(after[0].pod, before[0].pod);
  EXPECT_NE(after[1].pod, before[1].pod);
  EXPECT_EQ(after[1].memory_request, 2_MiB);
  EXPECT_EQ(after[2].pod, before[2].pod);  // it had no description, then or now
}

TEST_F(Registry, ACriticalPriorityIsSeen) {
  Pod pod = manifest(kUid, 1_MiB);
  pod.priority = kSystemCriticalPriority;
  registry.set_declared_pods({pod});
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  EXPECT_TRUE(only().critical);
}

// Once known, whether it is over a limit is not looked up again.
TEST_F(Registry, StorageIsUnlimitedWhereNothingOfAPodLimitsIt) {
  registry.add_cgroup({7}, "/kubepods/burstable/pod" + kUid);
  EXPECT_TRUE(only().storage_is_unlimited);

  const auto limited_by = [&](auto&& limit) {
    Pod pod = manifest(kUid, 64_MiB);
    limit(pod);
    registry.set_declared_pods({pod});
    return !only().storage_is_unlimited;
  };
  const Quantity one = Quantity::of(1);
  EXPECT_FALSE(limited_by([](Pod& pod) { pod.volumes.emplace_back(); }));
  EXPECT_TRUE(limited_by([&](Pod& pod) { pod.volumes.emplace_back().size_limit = one; }));
  EXPECT_TRUE(limited_by([&](Pod& pod) { pod.containers[0].limits["ephemeral-storage"] = one; }));
  EXPECT_FALSE(limited_by([&](Pod& pod) { pod.containers[0].limits["memory"] = one; }));
  EXPECT_TRUE(limited_by(
      [&](Pod& pod) { pod.init_containers.emplace_back().limits["ephemeral-storage"] = one; }));
}

TEST_F(Registry, TheGoneAreForgottenAndTheOthersStay) {
  for (std::uint64_t id = 1; id <= 3; ++id)
    registry.add_cgroup({id}, "/kubepods/burstable/pod" + std::to_string(id));
  registry.gone({1});
  registry.gone({1});
  registry.gone({99});
  std::vector<std::string> left;
  for (const PodReading& reading : read())
    left.push_back(reading.pod->uid + " in " + std::to_string(reading.cgroup.value));
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"2 in 2", "3 in 3"}));
}

TEST_F(Registry, APodBornAgainIsAnotherCgroup) {
  registry.set_declared_pods({manifest(kUid, 1_MiB)});
  registry.add_cgroup({1}, "/kubepods/burstable/pod" + kUid);
  registry.add_cgroup({2}, "/kubepods/burstable/pod" + kUid);  // before the news of the other's end
  EXPECT_EQ(read().size(), 2u);
  registry.gone({1});
  EXPECT_EQ(only().cgroup, CgroupId{2});
}

TEST_F(Registry, APodReportedTwiceIsOnePod) {
  registry.add_cgroup({1}, "/kubepods/burstable/pod" + kUid);
  EXPECT_TRUE(registry.add_cgroup({1}, "/kubepods/burstable/pod" + kUid));
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(Registry, AllocatesNothingWhileNothingChanges) {
  registry.set_declared_pods({manifest("a", 1_MiB)});
  registry.add_cgroup({1}, "/kubepods/burstable/poda");
  registry.add_cgroup({2}, "/kubepods/burstable/podb");
  records[{1}] = records[{2}] = limits(32 << 20, 0, 64 << 20);
  const auto record_of = [this](CgroupId id) -> const hr_record* { return &records.at(id); };
  registry.read(record_of);

  const auto before = daemon::thread_allocation_count();
  EXPECT_EQ(registry.read(record_of).size(), 2u);
  EXPECT_EQ(daemon::thread_allocation_count(), before);
  records[{2}].memory_min = 16 << 20;
  registry.read(record_of);
  EXPECT_GT(daemon::thread_allocation_count(), before) << "the counter counts";
}

TEST_F(Registry, ReadAgainItLooksAtWhatIsNewAlone) {
  registry.add_cgroup({7}, "/kubepods/pod" + kUid);
  registry.add_cgroup({8}, "/kubepods/podffffffff-1111-4222-8333-944445555666");
  records[{7}] = records[{8}] = limits(0, 64 << 20, HR_NO_LIMIT);
  ASSERT_EQ(read().size(), 2u);
  records[{7}].memory_low = records[{8}].memory_low = 128 << 20;
  const auto readings =
      registry.read_again([&](const hr_record* record) { return record == &records[{8}]; });
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].record, &records[{7}]);
  EXPECT_EQ(readings[0].memory_request, 64_MiB);
  EXPECT_EQ(readings[1].memory_request, 128_MiB);
}

TEST_F(Registry, CountsPodsByClass) {
  registry.set_declared_pods({manifest("a", 1_MiB), manifest("b", 1_MiB)});
  registry.add_cgroup({1}, "/kubepods/burstable/poda");
  registry.add_cgroup({2}, "/kubepods/burstable/podc");
  const auto manifest_counts = registry.manifest_counts();
  EXPECT_EQ(manifest_counts.with_manifest, 1u);
  EXPECT_EQ(manifest_counts.without_manifest, 1u);
  EXPECT_EQ(manifest_counts.without_cgroup, 1u);
}

// A new pod's cgroup is there before headroom-kube has asked for its description.
TEST_F(Registry, BesideAKubeletADescriptionIsAwaited) {
  registry.set_declared_pods({}, {}, true);
  registry.add_cgroup(CgroupId{7}, "/kubepods/burstable/pod" + kUid);
  EXPECT_EQ(only().description, PodDescription::kAwaited);
  registry.show_protected(CgroupId{7}, true);
  EXPECT_EQ(only().description, PodDescription::kAwaitedProtected);
  registry.show_protected(CgroupId{7}, false);
  EXPECT_EQ(only().description, PodDescription::kAwaited);
  registry.set_declared_pods({manifest(kUid, 1_MiB)}, {kUid}, true);
  EXPECT_EQ(only().description, PodDescription::kComplete);
}

TEST_F(Registry, AGuaranteedPodByItsPathIsProtectedWhileItsDescriptionIsAwaited) {
  registry.set_declared_pods({}, {}, true);
  registry.add_cgroup(CgroupId{7}, "/kubepods/pod" + kUid);
  EXPECT_EQ(only().description, PodDescription::kAwaitedProtected);
}

TEST_F(Registry, WithoutAKubeletNoDescriptionIsAwaited) {
  registry.add_cgroup(CgroupId{7}, "/kubepods/burstable/pod" + kUid);
  EXPECT_EQ(only().description, PodDescription::kComplete);
  registry.set_declared_pods({}, {}, true);
  EXPECT_EQ(only().description, PodDescription::kAwaited) << "the configuration now names one";
  registry.set_declared_pods({}, {}, false);
  EXPECT_EQ(only().description, PodDescription::kComplete);
}

}  // namespace
}  // namespace headroom::observe
