// SPDX-License-Identifier: Apache-2.0
#include "observe/node/disk_meter.h"

#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/mountinfo.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace headroom::observe {
namespace {

std::optional<ProcessIdentity> first_process(const std::string& cgroup) {
  const Fd procs(::open((cgroup + "/cgroup.procs").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> line{};  // the first line of as many as there may be
  const ssize_t size = procs ? ::read(procs.get(), line.data(), line.size()) : -1;
  if (size <= 0) return std::nullopt;
  pid_t pid = 0;
  std::from_chars(line.data(), line.data() + size, pid);
  if (pid <= 0) return std::nullopt;  // of another pid namespace
  const auto stat = process_stat(pid);
  return stat ? std::optional(stat->name) : std::nullopt;
}

std::optional<std::string> read_upper(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/mountinfo");
  return upper_directory(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

std::optional<std::string> upper_directory(std::string_view mountinfo) {
  std::optional<std::string> upper;
  // What was mounted over the root last is the root.
  for (const Mount& mount : parse_mounts(mountinfo))
    if (mount.point == "/")
      upper = mount.type == "overlay" ? mount_option(mount, "upperdir") : std::nullopt;
  return upper;
}

WritableLayers::Known WritableLayers::refresh(const std::string& cgroup,
                                              const Known* before) const {
  if (before && before->settled() && calls_ % kSettledReadPeriod != 0) return *before;
  Known now{.cgroup = cgroup, .first = first_process(cgroup), .upper = {}};
  const bool same_process = before && before->first == now.first;
  if (same_process && before->settled() && calls_ % kMountsReadPeriod != 0)
    now.upper = before->upper;
  else if (now.first)
    now.upper = read_upper(now.first->pid);
  if (same_process && before->upper == now.upper) now.same = before->same + 1;
  return now;
}

std::vector<WritableLayers::Layer> WritableLayers::of(const std::vector<std::string>& cgroups) {
  ++calls_;
  std::vector<Layer> layers;
  std::vector<Known> now;
  now.reserve(cgroups.size());
  for (const std::string& cgroup : cgroups) {
    const auto before = std::find_if(known_.begin(), known_.end(),
                                     [&](const Known& known) { return known.cgroup == cgroup; });
    now.push_back(refresh(cgroup, before == known_.end() ? nullptr : &*before));
    const auto& upper = now.back().upper;
    if (upper && std::ranges::find(layers, *upper, &Layer::directory) == layers.end())
      layers.push_back({cgroup, *upper});
  }
  known_ = std::move(now);
  return layers;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kUrgentDuration = seconds(5);
constexpr Duration kUrgentPeriod = seconds(2);
constexpr Duration kTick = seconds(2), kUrgentTick = milliseconds(500);
constexpr WalkRate kUrgentRate{1'000'000};

// A measurement must not take disk time or CPU from any workload. 1: the calling thread; class 3:
// idle.
void lower_priority() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
  ::syscall(SYS_ioprio_set, 1, 0, 3 << 13);
}

// One pod's measuring.
class PodMeasurement {
 public:
  PodMeasurement(const DiskTarget& target, WritableLayers& layers, const DiskMeterOptions& options,
                 WalkRate rate, const std::stop_token& stop, std::atomic<std::uint64_t>& failed)
      : target_(target),
        layers_(layers),
        options_(options),
        rate_(rate),
        stop_(stop),
        failed_(failed) {}

  DiskUsage all() {
    usage_.at = options_.clock();
    for (const Container& container : target_.pod->containers)
      add_usage(container);
    for (const Container& container : target_.pod->init_containers)
      add_usage(container);
    running_layers();
    for (const Volume& volume : target_.pod->volumes)
      add_usage(volume);
    if (target_.pod->source == PodSource::kCgroupTree) undeclared_volumes();
    return std::move(usage_);
  }

 private:
  FsUsage size(const std::string& path) {
    if (path.empty()) return {};
    const auto measured = directory_size(path, rate_, stop_);
    if (measured) return *measured;
    failed_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }

  void add_usage(const Container& container) {
    ContainerUsage entry;
    entry.name = container.name;
    entry.logs = size(logs_path(options_.paths, *target_.pod, container.name));
    entry.rootfs = size(rootfs_path(options_.paths, *target_.pod, container.name));
    usage_.containers.push_back(std::move(entry));
  }

  // The runtime's id in a cgroup's name does not have the container's name; if the pod has only one
  // container, the layer is its own. Otherwise the entry has the cgroup's name.
  void running_layers() {
    const bool one_container = target_.pod->containers.size() == 1;
    for (const auto& [cgroup, directory] : layers_.of(target_.containers)) {
      ContainerUsage entry;
      entry.name = one_container ? target_.pod->containers.front().name
                                 : std::filesystem::path(cgroup).filename().string();
      entry.rootfs = size(directory);
      usage_.containers.push_back(std::move(entry));
    }
  }

  void add_usage(const Volume& volume) {
    if (volume.kind == Volume::Kind::kOther) return;
    if (volume.kind == Volume::Kind::kHostPath && !options_.host_paths) return;
    VolumeUsage entry;
    entry.name = volume.name;
    entry.usage = size(volume_path(options_.paths, *target_.pod, volume));
    entry.ranked = !volume.in_memory;
    entry.counted = volume.kind == Volume::Kind::kEmptyDir && !volume.in_memory;
    usage_.volumes.push_back(std::move(entry));
  }

  // For a pod without a manifest, the emptyDirs are those that exist.
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
      add_usage(any);
    }
  }

  const DiskTarget& target_;
  WritableLayers& layers_;
  const DiskMeterOptions& options_;
  const WalkRate rate_;
  const std::stop_token& stop_;
  std::atomic<std::uint64_t>& failed_;
  DiskUsage usage_;
};

}  // namespace

DiskUsage measure(const DiskTarget& target, WritableLayers& layers, const DiskMeterOptions& options,
                  WalkRate rate, const std::stop_token& stop, std::atomic<std::uint64_t>& failed) {
  return PodMeasurement(target, layers, options, rate, stop, failed).all();
}

DiskMeter::DiskMeter(DiskMeterOptions options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

// Pods that are gone are forgotten; pods that are described anew are measured again.
void DiskMeter::set_targets(std::vector<DiskTarget> targets) {
  const std::lock_guard lock(mutex_);
  std::unordered_map<std::uint64_t, const QueueEntry*> before;
  for (const QueueEntry& place : queue_)
    before.emplace(place.target.cgroup.value, &place);
  std::list<QueueEntry> queue;
  for (DiskTarget& target : targets) {
    const auto was = before.find(target.cgroup.value);
    const bool known = was != before.end();
    const bool same = known && was->second->target.pod == target.pod;
    queue.push_back({.target = std::move(target),
                     .layers = known ? was->second->layers : std::make_shared<WritableLayers>(),
                     .measured = same ? was->second->measured : std::nullopt});
  }
  queue.sort([](const QueueEntry& a, const QueueEntry& b) { return a.measured < b.measured; });
  queue_ = std::move(queue);
  changed_.notify_one();
}

void DiskMeter::measure_urgently() {
  const std::lock_guard lock(mutex_);
  const bool already = is_urgent(options_.clock());
  urgent_until_ = options_.clock() + kUrgentDuration;
  if (!already) changed_.notify_one();
}

std::vector<DiskMeter::Measured> DiskMeter::take() {
  if (!has_results_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  has_results_.store(false, std::memory_order_relaxed);
  return std::exchange(results_, {});
}

bool DiskMeter::is_urgent(Instant at) const {
  return at < urgent_until_;
}

// Of the first in the queue; one that was never measured is due now.
std::optional<Instant> DiskMeter::next_due(Instant at) const {
  if (queue_.empty()) return std::nullopt;
  const auto& last = queue_.front().measured;
  return last ? *last + (is_urgent(at) ? kUrgentPeriod : options_.period) : at;
}

bool DiskMeter::is_measurement_due(Instant at) const {
  const auto due = next_due(at);
  return due && at >= *due;
}

// Until the next one is due. Those of a tick are measured together: a wake costs more than a
// measurement.
Duration DiskMeter::time_until_due(Instant at) const {
  const auto due = next_due(at);
  return due ? std::max<Duration>(*due - at, is_urgent(at) ? kUrgentTick : kTick) : options_.period;
}

// Moves it to the end of the queue, unless it was described anew meanwhile: then it is still to be
// measured.
void DiskMeter::set_measured(const DiskTarget& target, Instant measured) {
  const auto place = std::find_if(queue_.begin(), queue_.end(), [&](const QueueEntry& each) {
    return each.target.cgroup == target.cgroup && each.target.pod == target.pod;
  });
  if (place == queue_.end()) return;
  place->measured = measured;
  queue_.splice(queue_.end(), queue_, place);
}

void DiskMeter::run(const std::stop_token& stop) {
  report::set_thread_name("disks");
  lower_priority();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Instant now = options_.clock();
    if (!is_measurement_due(now)) {
      changed_.wait_for(lock, stop, time_until_due(now), [&, was = is_urgent(now)] {
        const Instant at = options_.clock();
        return is_measurement_due(at) || is_urgent(at) != was;
      });
      continue;
    }
    const DiskTarget target = queue_.front().target;
    const auto layers = queue_.front().layers;
    const WalkRate rate = is_urgent(options_.clock()) ? kUrgentRate : options_.rate;
    lock.unlock();
    std::shared_ptr<const DiskUsage> usage;
    log::log_exceptions("measure the disk usage of a pod", [&] {
      usage = std::make_shared<const DiskUsage>(
          measure(target, *layers, options_, rate, stop, failed_));
    });
    lock.lock();
    if (stop.stop_requested()) return;  // cut short: it says nothing
    set_measured(target, usage ? usage->at : options_.clock());
    if (!usage) {
      failed_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    results_.push_back({target.cgroup, std::move(usage)});
    has_results_.store(true, std::memory_order_release);
  }
}

}  // namespace headroom::observe
