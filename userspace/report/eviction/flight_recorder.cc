// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/flight_recorder.h"

#include "base/file_io.h"
#include "base/json_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

void fill(SignalSample& reading, const Snapshot& snapshot, const Verdict& verdict) {
  reading.at = snapshot.at;
  for (std::size_t i = 0; i < kSignals; ++i) {
    const auto& seen = snapshot.observations[i];
    reading.available[i] = seen ? std::optional(seen->available) : std::nullopt;
  }
  reading.below = reading.met = 0;
  for (const ThresholdReading& threshold_reading : verdict.thresholds) {
    if (threshold_reading.index >= 64) continue;
    const std::uint64_t bit = std::uint64_t{1} << threshold_reading.index;
    if (threshold_reading.below_since) reading.below |= bit;
    if (threshold_reading.met) reading.met |= bit;
  }
}

// Inserts the pod among those with the largest working sets, if it is one of them.
void insert_by_working_set(TopPodsSample& row, const PodReading& reading, Bytes held) {
  if (row.count == TopPodsSample::kMax && row.pods[row.count - 1].working_set >= held) return;
  std::size_t at = row.count < TopPodsSample::kMax ? row.count++ : row.count - 1;
  for (; at > 0 && row.pods[at - 1].working_set < held; --at)
    std::swap(row.pods[at], row.pods[at - 1]);
  const bool stalls = reading.record->valid & HR_PSI;
  row.pods[at] = {
      .pod = reading.pod,
      .working_set = held,
      .stalled_ns = stalls ? reading.record->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] : HR_UNKNOWN};
}

void fill(TopPodsSample& row, const Snapshot& snapshot) {
  row.at = snapshot.at;
  row.count = 0;
  for (const PodReading& reading : snapshot.pods)
    if (const auto held = reading.record ? working_set(*reading.record) : std::nullopt)
      insert_by_working_set(row, reading, *held);
  for (PodMemorySample& unused : std::span(row.pods).subspan(row.count))
    unused.pod.reset();
}

template <class T, std::size_t kCapacity>
bool due(const Ring<T, kCapacity>& ring, Instant at) {
  return ring.size() == 0 || at - ring.newest().at >= FlightRecording::kStep;
}

}  // namespace

FlightRecorder::FlightRecorder()
    : live_(std::make_unique<FlightRecording>()), pool_(std::make_shared<Pool>()) {}

void FlightRecorder::record(const Snapshot& snapshot, const Verdict& verdict) {
  SignalSample& turn = live_->turns.next_slot();
  fill(turn, snapshot, verdict);
  if (due(live_->seconds, snapshot.at)) live_->seconds.next_slot() = turn;
  if (snapshot.cgroups && due(live_->pods, snapshot.at)) fill(live_->pods.next_slot(), snapshot);
}

FlightRecording* FlightRecorder::take() {
  const std::lock_guard lock(pool_->mutex);
  const auto free = std::find(pool_->held.begin(), pool_->held.end(), false);
  if (free == pool_->held.end()) return nullptr;
  *free = true;
  return &pool_->recordings[static_cast<std::size_t>(free - pool_->held.begin())];
}

std::shared_ptr<const FlightRecording> FlightRecorder::capture(const Policy& policy,
                                                               const Verdict& verdict, Instant at) {
  if (auto shared = latest_.lock(); shared && at - shared->at < kShareWindow) return shared;
  FlightRecording* flight_recording = take();
  if (!flight_recording) {
    ++lost_;
    return nullptr;
  }
  flight_recording->at = at;
  flight_recording->seconds = live_->seconds;
  flight_recording->turns = live_->turns;
  flight_recording->pods = live_->pods;
  fill_thresholds(flight_recording->thresholds, policy, verdict);
  std::shared_ptr<const FlightRecording> captured(
      flight_recording, [pool = pool_](const FlightRecording* done) {
        const std::lock_guard lock(pool->mutex);
        pool->held[static_cast<std::size_t>(done - pool->recordings.data())] = false;
      });
  latest_ = captured;
  return captured;
}

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

double ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

Json bits(std::uint64_t set) {
  Json list = Json::array();
  for (unsigned i = 0; i < 64; ++i)
    if (set >> i & 1) list.push_back(i);
  return list;
}

Json reading_json(const SignalSample& reading, Instant end) {
  Json available = Json::object();
  for (std::size_t i = 0; i < kSignals; ++i)
    if (reading.available[i]) available[std::string(kSignalNames[i])] = *reading.available[i];
  return {{"ms", ms(reading.at - end)},
          {"available", std::move(available)},
          {"below", bits(reading.below)},
          {"met", bits(reading.met)}};
}

Json pod_json(const PodMemorySample& held) {
  return {{"namespace", held.pod->pod_namespace},
          {"name", held.pod->name},
          {"uid", held.pod->uid},
          {"working_set", held.working_set.count},
          {"stalled_ns", held.stalled_ns == HR_UNKNOWN ? Json(nullptr) : Json(held.stalled_ns)}};
}

Json pods_json(const TopPodsSample& row, Instant end) {
  Json pods = Json::array();
  for (std::size_t i = 0; i < row.count; ++i)
    pods.push_back(pod_json(row.pods[i]));
  return {{"ms", ms(row.at - end)}, {"pods", std::move(pods)}};
}

template <class T, std::size_t kCapacity, class Row>
Json ring_json(const Ring<T, kCapacity>& ring, Instant end, Row row) {
  Json list = Json::array();
  // Rings may hold values older than a minute, if the node was idle for a while.
  for (std::size_t i = 0; i < ring.size(); ++i)
    if (end - ring[i].at <= std::chrono::seconds(60)) list.push_back(row(ring[i], end));
  return list;
}

Json threshold_json(const ThresholdView& threshold) {
  return {{"signal", name(threshold.signal)},
          {"kind", kind_name(threshold.hard())},
          {"limit", threshold.limit ? Json(*threshold.limit) : Json(nullptr)}};
}

// The uid comes from a manifest: it must not name a file outside the directory.
std::string file_name(const Pod& pod, WallTime at) {
  constexpr std::size_t kMaxUidLength = 64;
  std::string name = rfc3339_micro(at) + "-" + pod.uid.substr(0, kMaxUidLength);
  std::erase(name, ':');
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '.' && letter != '-')
      letter = '_';
  return name + ".json";
}

Result<> write_file(const fs::path& path, const std::string& text) {
  const std::string doing = "write " + path.string();
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (!fd) return errno_failure(doing, errno);
  const int code = write_all(fd.get(), text);
  if (code == 0) return {};
  ::unlink(path.c_str());  // a partial file is useless
  return errno_failure(doing, code);
}

// Names begin with the time, so sorting by name sorts by age.
void remove_oldest(const fs::path& directory) {
  std::error_code code;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == ".json") files.push_back(it->path());
  if (files.size() <= kMaxFlightRecordings) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - kMaxFlightRecordings);
  for (const fs::path& file : files)
    fs::remove(file, code);
}

}  // namespace

std::string flight_recording_json(const FlightRecording& flight_recording, WallTime captured_at) {
  Json thresholds = Json::array();
  for (const ThresholdView& threshold : flight_recording.thresholds)
    thresholds.push_back(threshold_json(threshold));
  const Json json{
      {"time", rfc3339_micro(captured_at)},
      {"boot_ns", flight_recording.at.time_since_epoch().count()},
      {"thresholds", std::move(thresholds)},
      {"seconds", ring_json(flight_recording.seconds, flight_recording.at, reading_json)},
      {"turns", ring_json(flight_recording.turns, flight_recording.at, reading_json)},
      {"pods", ring_json(flight_recording.pods, flight_recording.at, pods_json)}};
  return to_json_text(json) + '\n';
}

Result<std::string> write_flight_recording(const fs::path& audit_log,
                                           const FlightRecording& flight_recording, const Pod& pod,
                                           WallTime captured_at) {
  const fs::path directory = audit_log.parent_path() / kFlightRecordingsDirectory;
  std::error_code made;
  fs::create_directories(directory, made);
  if (made) return errno_failure("create " + directory.string(), made.value());
  const std::string name = file_name(pod, captured_at);
  if (auto written =
          write_file(directory / name, flight_recording_json(flight_recording, captured_at));
      !written)
    return tl::make_unexpected(written.error());
  remove_oldest(directory);
  return std::string(kFlightRecordingsDirectory) + "/" + name;
}

}  // namespace headroom::report
