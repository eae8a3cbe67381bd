// SPDX-License-Identifier: Apache-2.0
// In which order pods are evicted, signal by signal: as given, and as the daemon reads it.
#include "judge/eviction/rank/rank.h"
#include "judge/resources/pod_resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

hr_record record_of(const PodUsage& usage) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);  // all ones: unknown
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_PIDS;
  record.memory_usage = static_cast<std::uint64_t>(usage.working_set.value_or(Bytes{}).count);
  record.inactive_file = 0;
  record.pids_current = static_cast<std::uint64_t>(usage.processes.value_or(0));
  return record;
}

DiskUsage disk_of(const PodUsage& usage) {
  DiskUsage disk;
  disk.containers = usage.containers;
  for (const FsUsage& volume : usage.local_volumes)
    disk.volumes.push_back({.name = "", .usage = volume, .ranked = true, .counted = true});
  return disk;
}

// Pod-level resources count in 1.36 whatever their gate says: with the gate alone, without it
// beside the containers' requests of other resources.
Pod ranked_pod(const nlohmann::json& line, const nlohmann::json& json) {
  if (!line.contains("gates")) return pod_of(json);
  Pod pod = pod_of(json, true);
  if (!pod.pod_level || line.at("gates").at("PodLevelResources").get<bool>()) return pod;
  Pod bare = pod;
  bare.overhead.clear();
  pod.pod_level->requests = pod_requests(bare);
  return pod;
}

class RankingVectors : public VectorTest {
 protected:
  void SetUp() override {
    VectorTest::SetUp();
    if (HasFatalFailure()) return;
    for (const auto& entry : line().at("pods")) {
      pods_.push_back(ranked_pod(line(), entry.at("pod")));
      const auto& usage = entry.at("usage");
      usages_.push_back(usage.is_null() ? std::nullopt : std::optional(usage_of(usage)));
    }
  }

  ImageStorage images() const {
    return {.dedicated = line().at("dedicated_imagefs").get<bool>(),
            .split = line().at("split_container_imagefs").get<bool>()};
  }

  std::vector<std::string> by_usage(Signal signal, ImageStorage images) const {
    std::vector<RankInput> inputs;
    for (std::size_t i = 0; i < pods_.size(); ++i)
      inputs.push_back({&pods_[i], usages_[i] ? &*usages_[i] : nullptr});
    std::vector<std::string> names;
    for (const std::uint32_t i : rank(signal, images, inputs))
      names.push_back(pods_[i].name);
    return names;
  }

  // From records and measurements, as the daemon reads them. Stats without a working set count as
  // none used.
  std::vector<std::string> by_readings(Signal signal, ImageStorage images) const {
    std::vector<hr_record> records(pods_.size());
    std::vector<DiskUsage> disks(pods_.size());
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const Pod& pod = pods_[i];
      PodReading reading;
      reading.pod = std::make_shared<Pod>(pod);
      reading.memory_request = Bytes{eviction_request(pod, "memory").value()};
      reading.storage_request = Bytes{eviction_request(pod, "ephemeral-storage").value()};
      if (usages_[i]) {
        records[i] = record_of(*usages_[i]);
        disks[i] = disk_of(*usages_[i]);
        reading.record = &records[i];
        reading.disk = &disks[i];
      }
      candidates.push_back(candidate_for(signal, images, reading));
      candidates.back().pod = static_cast<std::uint32_t>(i);
    }
    rank(signal, candidates);
    std::vector<std::string> names;
    for (const Candidate& each : candidates)
      names.push_back(pods_[each.pod].name);
    return names;
  }

 private:
  std::vector<Pod> pods_;
  std::vector<std::optional<PodUsage>> usages_;
};

TEST_P(RankingVectors, Agree) {
  const auto signal = signal_named(text("signal"));
  ASSERT_TRUE(signal);
  const auto expected = line().at("expected_order").get<std::vector<std::string>>();
  EXPECT_EQ(by_usage(*signal, images()), expected);
  EXPECT_EQ(by_readings(*signal, images()), expected);
}

INSTANTIATE_TEST_SUITE_P(Lines, RankingVectors, testing::ValuesIn(lines_of("ranking.jsonl")),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Lines136, RankingVectors, testing::ValuesIn(lines_of("ranking_136.jsonl")),
                         case_name);

class RankingRequestVectors : public VectorTest {};

TEST_P(RankingRequestVectors, Agree) {
  const auto signal = signal_named(text("signal"));
  ASSERT_TRUE(signal);
  const bool memory =
      *signal == Signal::kMemoryAvailable || *signal == Signal::kAllocatableMemoryAvailable;
  if (line().at("requests").is_null()) return;  // no request counts for this signal
  for (const auto& each : line().at("pods")) {
    const Pod pod = ranked_pod(line(), each.at("pod"));
    EXPECT_EQ(eviction_request(pod, memory ? "memory" : "ephemeral-storage").value(),
              line().at("requests").at(pod.name).get<std::int64_t>())
        << pod.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, RankingRequestVectors,
                         testing::ValuesIn(lines_of("ranking_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
