// SPDX-License-Identifier: Apache-2.0
// MemoryForecaster: forecasts the memory peak of the node's pods once a minute from the published
// table of cgroups, publishes the forecasts, and saves them for the next start in this boot.
//
// ForecastWorker runs it on a thread of its own: the loop does not take part.
#pragma once

#include "base/state/state_file.h"
#include "judge/forecast/peak_forecast.h"
#include "report/view/node_view.h"
#include "report/view/published_views.h"

#include <headroom/result.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace headroom::state {

HEADROOM_FIELDS(PeakForecast::PodSeries, pod, used, limit, seen);
HEADROOM_FIELDS(PeakForecast::Made, forecast, peak, age);
HEADROOM_FIELDS(PeakForecast::Record, forecast, held, exceeded, error_sum);
HEADROOM_FIELDS(PeakForecast::State, due, last, pods, node, made, records);

}  // namespace headroom::state

namespace headroom::daemon {

// Of every pod of the table.
std::vector<PeakForecast::PodUse> pod_use(const report::CgroupTable& table);

class MemoryForecaster {
 public:
  // A crash of the daemon loses no more than this.
  static constexpr Duration kSavePeriod = std::chrono::minutes(5);

  // Continues with the saved forecasts; a file that cannot be read is logged.
  MemoryForecaster(std::shared_ptr<report::PublishedViews> views,
                   const std::filesystem::path& state_dir);

  // Takes a sample if one is due and the table is not older than a step.
  void update(Instant now);
  // Error: the file could not be written.
  Result<> save();

 private:
  const std::shared_ptr<report::PublishedViews> views_;
  const state::StateFile<PeakForecast::State> file_;
  PeakForecast forecast_;
  Instant saved_at_{};
};

class ForecastWorker {
 public:
  static constexpr std::chrono::seconds kPollPeriod{5};

  ForecastWorker(std::shared_ptr<report::PublishedViews> views,
                 const std::filesystem::path& state_dir);
  // Saves the forecasts.
  ~ForecastWorker();
  ForecastWorker(const ForecastWorker&) = delete;
  ForecastWorker& operator=(const ForecastWorker&) = delete;

 private:
  void run(const std::stop_token& stop);

  MemoryForecaster forecaster_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
