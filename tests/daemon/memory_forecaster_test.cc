// SPDX-License-Identifier: Apache-2.0
// MemoryForecaster: what it reads of the published table, and what a restart keeps.
#include "daemon/forecast/memory_forecaster.h"

#include "config/temp_dir.h"
#include "report/status/status_json.h"

#include <headroom/cgroup_record.h>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using test::TempDir;

hr_record record_of(std::uint64_t id, std::uint64_t usage, std::uint64_t limit) {
  hr_record record = unknown_record(id, 1);
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  record.memory_usage = usage;
  record.inactive_file = 0;
  record.memory_max = limit;
  return record;
}

report::PodRow row_of(std::uint64_t id) {
  return {.pod = std::make_shared<Pod>(), .cgroup = CgroupId{id}, .memory_request = {}};
}

struct Node {
  std::shared_ptr<report::PublishedViews> views = std::make_shared<report::PublishedViews>();
  TempDir state;

  void publish(Instant at, std::uint64_t usage) const {
    views->cgroups.publish([&](report::CgroupTable& next, const report::CgroupTable*) {
      next.at = at;
      next.records = {record_of(3, usage, 1 << 30)};
      next.pods = {row_of(3)};
    });
  }
  void run(MemoryForecaster& forecaster, int from, int minutes, std::uint64_t usage) const {
    for (int minute = from; minute < from + minutes; ++minute) {
      const Instant at = Instant{} + std::chrono::minutes(minute);
      publish(at, usage);
      forecaster.update(at + std::chrono::seconds(5));
    }
  }
  std::optional<double> forecast(std::size_t predictor = 0) const {
    const auto latest = views->memory_forecasts.latest();
    return latest ? (*latest)[predictor].forecast : std::nullopt;
  }
};

TEST(MemoryForecaster, ReadsThePodsOfTheTable) {
  report::CgroupTable table;
  table.records = {record_of(3, 100 << 20, HR_NO_LIMIT), unknown_record(4, 1)};
  table.pods = {row_of(3), row_of(4), row_of(5)};
  const auto pods = pod_use(table);
  ASSERT_EQ(pods.size(), 3u);
  EXPECT_EQ(pods[0].used, 100_MiB);
  EXPECT_FALSE(pods[0].limit) << "max is no limit";
  EXPECT_FALSE(pods[1].used) << "not read";
  EXPECT_FALSE(pods[2].used) << "no record";
}

TEST(MemoryForecaster, ForecastsOnceItHasSeenAQuarterOfAnHour) {
  const Node node;
  MemoryForecaster forecaster(node.views, node.state.path());
  forecaster.update(Instant(std::chrono::minutes(1)));
  EXPECT_FALSE(node.views->memory_forecasts.latest()) << "nothing is published yet";
  node.run(forecaster, 1, 14, 100 << 20);
  EXPECT_FALSE(node.forecast());
  node.run(forecaster, 15, 1, 100 << 20);
  ASSERT_TRUE(node.forecast());
  EXPECT_NEAR(*node.forecast(), (100 + 0.014 * 1024) * 0x1p20, 1);
}

TEST(MemoryForecaster, AnOldTableIsNoSample) {
  const Node node;
  MemoryForecaster forecaster(node.views, node.state.path());
  node.run(forecaster, 1, 14, 100 << 20);
  node.publish(Instant(std::chrono::minutes(15)), 100 << 20);
  forecaster.update(Instant(std::chrono::minutes(17)));
  EXPECT_FALSE(node.forecast());
}

TEST(MemoryForecaster, ContinuesAfterARestart) {
  const Node node;
  {
    MemoryForecaster forecaster(node.views, node.state.path());
    node.run(forecaster, 1, 90, 100 << 20);
    ASSERT_TRUE(forecaster.save());
  }
  const auto before = (*node.views->memory_forecasts.latest())[0];
  EXPECT_GT(before.held, 10u);
  MemoryForecaster forecaster(node.views, node.state.path());
  node.run(forecaster, 91, 1, 100 << 20);
  const auto after = (*node.views->memory_forecasts.latest())[0];
  EXPECT_EQ(after.forecast, before.forecast) << "without a quarter of an hour of waiting";
  EXPECT_EQ(after.held, before.held + 1);
}

TEST(MemoryForecaster, ADamagedFileBeginsAnew) {
  const Node node;
  node.state.write("memory-forecast.json", "{");
  MemoryForecaster forecaster(node.views, node.state.path());
  node.run(forecaster, 1, 15, 100 << 20);
  EXPECT_TRUE(node.forecast());
  EXPECT_TRUE(std::filesystem::exists(node.state.path() / "memory-forecast.json.damaged"));
}

TEST(MemoryForecaster, IsInTheStatusDocument) {
  const Node node;
  MemoryForecaster forecaster(node.views, node.state.path());
  node.run(forecaster, 1, 15, 100 << 20);
  node.views->node.publish([](report::NodeView&, const report::NodeView*) {});
  const std::string text = report::status_text(*node.views, nullptr);
  EXPECT_NE(text.find(R"("memory_forecasts":[{"predictor":"drift","bytes":)"), std::string::npos)
      << text;
}

// The worker's thread ends at once, and leaves a file that the next one continues from.
TEST(ForecastWorker, SavesAtItsEnd) {
  const Node node;
  { const ForecastWorker worker(node.views, node.state.path()); }
  EXPECT_TRUE(std::filesystem::exists(node.state.path() / "memory-forecast.json"));
}

}  // namespace
}  // namespace headroom::daemon
