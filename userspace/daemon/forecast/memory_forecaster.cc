// SPDX-License-Identifier: Apache-2.0
#include "daemon/forecast/memory_forecaster.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "report/view/pod_index.h"

#include <headroom/cgroup_record.h>

#include <utility>

namespace headroom::daemon {

std::vector<PeakForecast::PodUse> pod_use(const report::CgroupTable& table) {
  const report::PodIndex index(table);
  std::vector<PeakForecast::PodUse> pods;
  for (const report::PodRow& row : table.pods) {
    PeakForecast::PodUse& pod = pods.emplace_back();
    pod.pod = row.cgroup;
    const hr_record* record = index.record_of(row.cgroup);
    if (!record) continue;
    pod.used = working_set(*record);
    if ((record->valid & HR_MEMORY_LIMITS) && record->memory_max < HR_NO_LIMIT)
      pod.limit = Bytes{static_cast<std::int64_t>(record->memory_max)};
  }
  return pods;
}

MemoryForecaster::MemoryForecaster(std::shared_ptr<report::PublishedViews> views,
                                   const std::filesystem::path& state_dir)
    : views_(std::move(views)), file_(state_dir / "memory-forecast.json") {
  if (auto saved = file_.load())
    forecast_ = PeakForecast(std::move(*saved));
  else
    log::error("{}: forecasts of memory begin anew", saved.error().what);
}

void MemoryForecaster::update(Instant now) {
  const auto table = views_->cgroups.latest();
  if (!table || now - table->at > PeakForecast::kStep || !forecast_.is_due(table->at)) return;
  forecast_.add(table->at, pod_use(*table));
  views_->memory_forecasts.publish(
      [this](PeakForecast::Records& next, const PeakForecast::Records*) {
        next = forecast_.records();
      });
  if (now - saved_at_ < kSavePeriod) return;
  saved_at_ = now;
  if (const auto saved = save(); !saved) log::error("{}", saved.error().what);
}

Result<> MemoryForecaster::save() {
  return file_.save(forecast_.state());
}

ForecastWorker::ForecastWorker(std::shared_ptr<report::PublishedViews> views,
                               const std::filesystem::path& state_dir)
    : forecaster_(std::move(views), state_dir) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ForecastWorker::~ForecastWorker() = default;

void ForecastWorker::run(const std::stop_token& stop) {
  report::set_thread_name("forecast");
  while (!stop.stop_requested()) {
    log::log_exceptions("forecast memory", [this] { forecaster_.update(observe::now()); });
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, kPollPeriod, [] { return false; });
  }
  log::log_exceptions("save the forecasts of memory", [this] {
    if (const auto saved = forecaster_.save(); !saved) log::error("{}", saved.error().what);
  });
}

}  // namespace headroom::daemon
