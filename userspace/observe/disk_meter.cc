// SPDX-License-Identifier: Apache-2.0
#include "observe/disk_meter.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

namespace headroom::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kHurryHolds = seconds(5);
constexpr Duration kHurriedPeriod = seconds(2);
constexpr Duration kTick = milliseconds(500);
constexpr WalkPace kHurriedPace{1'000'000};

// Nobody's disk or CPU is taken for the sake of a number. 1: the calling thread; class 3: idle.
void step_back() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
  ::syscall(SYS_ioprio_set, 1, 0, 3 << 13);
}

// One pod's measuring.
class Measuring {
 public:
  Measuring(const DiskTarget& target, WritableLayers& layers, const DiskMeterOptions& options,
            WalkPace pace, const std::stop_token& stop, std::atomic<std::uint64_t>& failed)
      : target_(target),
        layers_(layers),
        options_(options),
        pace_(pace),
        stop_(stop),
        failed_(failed) {}

  DiskUsage all() {
    usage_.at = options_.clock();
    for (const Container& container : target_.pod->containers)
      one(container);
    for (const Container& container : target_.pod->init_containers)
      one(container);
    running_layers();
    for (const Volume& volume : target_.pod->volumes)
      one(volume);
    if (target_.pod->source == PodSource::kCgroupTree) undeclared_volumes();
    return std::move(usage_);
  }

 private:
  FsUsage size(const std::string& path) {
    if (path.empty()) return {};
    const auto measured = tree_size(path, pace_, stop_);
    if (measured) return *measured;
    failed_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }

  void one(const Container& container) {
    ContainerUsage entry;
    entry.name = container.name;
    entry.logs = size(logs_path(options_.paths, *target_.pod, container.name));
    entry.rootfs = size(rootfs_path(options_.paths, *target_.pod, container.name));
    usage_.containers.push_back(std::move(entry));
  }

  // The runtime's id in a cgroup's name says nothing of the container's; where there is but one,
  // the layer is its own.
  void running_layers() {
    const bool one_container = target_.pod->containers.size() == 1;
    for (const std::string& layer : layers_.of(target_.containers)) {
      ContainerUsage entry;
      if (one_container) entry.name = target_.pod->containers.front().name;
      entry.rootfs = size(layer);
      usage_.containers.push_back(std::move(entry));
    }
  }

  void one(const Volume& volume) {
    if (volume.kind == Volume::Kind::kOther) return;
    if (volume.kind == Volume::Kind::kHostPath && !options_.host_paths) return;
    VolumeUsage entry;
    entry.name = volume.name;
    entry.usage = size(volume_path(options_.paths, *target_.pod, volume));
    entry.ranked = !volume.in_memory;
    entry.counted = volume.kind == Volume::Kind::kEmptyDir && !volume.in_memory;
    usage_.volumes.push_back(std::move(entry));
  }

  // Of a pod nobody described, the emptyDirs are those that are there.
  void undeclared_volumes() {
    Volume any;
    any.kind = Volume::Kind::kEmptyDir;
    any.name = "any";
    std::string directory = volume_path(options_.paths, *target_.pod, any);
    if (directory.empty()) return;
    directory.resize(directory.rfind('/'));
    if (::access(directory.c_str(), F_OK) != 0) return;  // as of most pods
    std::error_code error;
    for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
         at.increment(error)) {
      any.name = at->path().filename();
      one(any);
    }
  }

  const DiskTarget& target_;
  WritableLayers& layers_;
  const DiskMeterOptions& options_;
  const WalkPace pace_;
  const std::stop_token& stop_;
  std::atomic<std::uint64_t>& failed_;
  DiskUsage usage_;
};

}  // namespace

DiskUsage measure(const DiskTarget& target, WritableLayers& layers, const DiskMeterOptions& options,
                  WalkPace pace, const std::stop_token& stop, std::atomic<std::uint64_t>& failed) {
  return Measuring(target, layers, options, pace, stop, failed).all();
}

DiskMeter::DiskMeter(DiskMeterOptions options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

// Who is gone is forgotten, and who is described anew is measured anew.
void DiskMeter::retarget(std::vector<DiskTarget> targets) {
  const std::lock_guard lock(mutex_);
  std::unordered_map<std::uint64_t, const Place*> before;
  for (const Place& place : queue_)
    before.emplace(place.target.cgroup.value, &place);
  std::list<Place> queue;
  for (DiskTarget& target : targets) {
    const auto was = before.find(target.cgroup.value);
    const bool known = was != before.end();
    const bool same = known && was->second->target.pod == target.pod;
    queue.push_back({.target = std::move(target),
                     .layers = known ? was->second->layers : std::make_shared<WritableLayers>(),
                     .measured = same ? was->second->measured : std::nullopt});
  }
  queue.sort([](const Place& a, const Place& b) { return a.measured < b.measured; });
  queue_ = std::move(queue);
  changed_.notify_one();
}

void DiskMeter::hurry() {
  const std::lock_guard lock(mutex_);
  const bool already = hurried(options_.clock());
  hurry_until_ = options_.clock() + kHurryHolds;
  if (!already) changed_.notify_one();
}

std::vector<DiskMeter::Measured> DiskMeter::take() {
  if (!news_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  news_.store(false, std::memory_order_relaxed);
  return std::exchange(fresh_, {});
}

bool DiskMeter::hurried(Instant at) const {
  return at < hurry_until_;
}

// Of the first in the queue; one that was never measured is due now.
std::optional<Instant> DiskMeter::next_due(Instant at) const {
  if (queue_.empty()) return std::nullopt;
  const auto& last = queue_.front().measured;
  return last ? *last + (hurried(at) ? kHurriedPeriod : options_.period) : at;
}

bool DiskMeter::anyone_due(Instant at) const {
  const auto due = next_due(at);
  return due && at >= *due;
}

// Until the next one is due; those of half a second are measured together.
Duration DiskMeter::patience(Instant at) const {
  const auto due = next_due(at);
  return due ? std::max<Duration>(*due - at, kTick) : options_.period;
}

// To the end of the queue. One described anew meanwhile has yet to be measured.
void DiskMeter::note(const DiskTarget& target, Instant measured) {
  const auto place = std::find_if(queue_.begin(), queue_.end(), [&](const Place& each) {
    return each.target.cgroup == target.cgroup && each.target.pod == target.pod;
  });
  if (place == queue_.end()) return;
  place->measured = measured;
  queue_.splice(queue_.end(), queue_, place);
}

void DiskMeter::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "hr-disks");
  step_back();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Instant now = options_.clock();
    if (!anyone_due(now)) {
      changed_.wait_for(lock, stop, patience(now), [&, was = hurried(now)] {
        const Instant at = options_.clock();
        return anyone_due(at) || hurried(at) != was;
      });
      continue;
    }
    const DiskTarget target = queue_.front().target;
    const auto layers = queue_.front().layers;
    const WalkPace pace = hurried(options_.clock()) ? kHurriedPace : options_.pace;
    lock.unlock();
    auto usage =
        std::make_shared<const DiskUsage>(measure(target, *layers, options_, pace, stop, failed_));
    lock.lock();
    if (stop.stop_requested()) return;  // cut short: it says nothing
    note(target, usage->at);
    fresh_.push_back({target.cgroup, std::move(usage)});
    news_.store(true, std::memory_order_release);
  }
}

}  // namespace headroom::observe
