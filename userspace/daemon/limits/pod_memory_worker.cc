// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/pod_memory_worker.h"

#include "base/cgroup_directory.h"
#include "base/clock.h"
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/state/load_former.h"
#include "observe/cgroup/stat_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::daemon {
namespace {

using judge_limits::Brake;
using judge_limits::LimitReading;

constexpr Duration kIdle = std::chrono::seconds(1);
// What the node has left is read again after this.
constexpr Duration kRoomHold = std::chrono::milliseconds(10);
// After a request that reclaimed less than was asked for.
constexpr Duration kReclaimPause = std::chrono::milliseconds(200);
constexpr Duration kLowerPause = std::chrono::milliseconds(100);
// A check near a limit reads memory.stat and takes some 20 us: with so much time for each of these
// cgroups the thread takes a tenth of a CPU at most.
constexpr Duration kShareOfOne = std::chrono::microseconds(200);
constexpr std::size_t kThreads = 4;

using Text = std::array<char, 4096>;

std::string_view text_of(const Fd& file, Text& buffer) {
  const ssize_t n = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  return n > 0 ? std::string_view(buffer.data(), static_cast<std::size_t>(n)) : std::string_view();
}

Fd open_at(int directory, const char* file) {
  return Fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
}

// Absent: unknown, or no limit.
std::optional<std::int64_t> memory_max_of(const Fd& directory) {
  const auto max = number_at(directory.get(), "memory.max");
  return max && *max < kMaxNumber ? max : std::nullopt;
}

std::optional<std::int64_t> page_cache(const Fd& stat) {
  Text buffer;
  std::int64_t cache = 0;
  int found = 0;
  for (observe::FlatKeyed line(text_of(stat, buffer)); found < 2 && line.next();)
    if (line.key() == "inactive_file" || line.key() == "active_file") {
      cache += static_cast<std::int64_t>(line.value());
      ++found;
    }
  return found == 2 ? std::optional(cache) : std::nullopt;
}

}  // namespace

PodMemoryWorker::PodMemoryWorker(std::filesystem::path cgroup_root,
                                 const std::filesystem::path& state_dir,
                                 std::shared_ptr<LimitPlanQueue> plans)
    : root_(std::move(cgroup_root)),
      plans_(std::move(plans)),
      file_(act::memory_max_file(state_dir)),
      overrides_(root_,
                 [this](const act::MemoryMaxOverrides::Found& found) { return file_.save(found); }),
      limit_reclaim_(kThreads, "reclaim"),
      cold_reclaim_(1, "cold"),
      node_({.cgroup_root = root_}) {
  resume();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PodMemoryWorker::~PodMemoryWorker() = default;

void PodMemoryWorker::resume() {
  overrides_.resume(load_former(file_, "values of memory.max"));
}

void PodMemoryWorker::request(PodMemoryRequest request) {
  next_.put(std::move(request));
}

report::PodMemoryCounts PodMemoryWorker::counts() const {
  return published_.get();
}

void PodMemoryWorker::run(const std::stop_token& stop) {
  report::set_thread_name("limits");
  Instant due = observe::now();
  while (!stop.stop_requested()) {
    const auto wait = std::max<Duration>(due - observe::now(), Duration::zero());
    auto next = next_.take_within(wait, stop);
    due = observe::now() + kIdle;  // if it throws
    log::log_exceptions("watch the limits of pods", [&] {
      if (next) adopt(std::move(*next));
      due = check_due_limits();
      publish();
    });
  }
  log::log_exceptions("restore memory.max", [this] {
    overrides_.restore_all();
    for (const auto& [id, entry] : overrides_.found())
      log::warning("{}: memory.max stays raised, from {}, because the memory is in use", entry.path,
                   report::human_bytes(entry.found.count));
  });
}

void PodMemoryWorker::adopt(PodMemoryRequest request) {
  active_ = std::move(request);
  WatchedCgroups watched;
  for (const PodMemoryRequest::Limited& each : active_.limited) {
    auto known = watched_.extract(each.id);
    if (!known.empty()) {
      watched.insert(std::move(known));
    } else if (auto opened = open_cgroup(each.id, each.path)) {
      watched.emplace(each.id, std::move(*opened));
    }
  }
  // Not to be watched any more, or removed.
  for (const auto& [id, former] : watched_) {
    overrides_.release_brake(id, former.directory->get());
    limit_reclaim_.forget(id);
  }
  watched_ = std::move(watched);
  const act::MemoryMaxOverrides::Found raised = overrides_.found();
  if (!active_.limits.any() && !raised.empty()) overrides_.restore_all();
  if (active_.limits.any())
    for (const auto& [id, entry] : raised)
      if (!watched_.contains(id) && ::access((root_.native() + entry.path).c_str(), F_OK) != 0)
        overrides_.forget(id);
  push_cold_memory();
}

std::optional<PodMemoryWorker::Watched> PodMemoryWorker::open_cgroup(
    CgroupId id, const std::string& path) const {
  auto directory = std::make_shared<Fd>(headroom::open_cgroup(root_.native() + path, id));
  if (!*directory) return std::nullopt;
  Watched watched{.path = path,
                  .directory = directory,
                  .current = open_at(directory->get(), "memory.current"),
                  .stat = open_at(directory->get(), "memory.stat")};
  const auto max = memory_max_of(*directory);
  if (!watched.current || !watched.stat || !max || *max <= 0) return std::nullopt;
  watched.max = *max;
  if (const auto original = overrides_.original(id)) watched.history.original = original->count;
  return watched;
}

Instant PodMemoryWorker::check_due_limits() {
  const Instant at = observe::now();
  Instant next = at + kIdle;
  std::size_t near = 0;
  for (auto& [id, watched] : watched_) {
    if (watched.due <= at) check_limit(id, watched, at);
    next = std::min(next, watched.due);
    near += watched.near ? 1 : 0;
  }
  near_ = near;
  return next;
}

void PodMemoryWorker::check_limit(CgroupId id, Watched& watched, Instant at) {
  const auto usage = number_of(watched.current);
  if (!usage) {  // if the cgroup was removed, the next request leaves it out
    watched.due = at + kLowerPause;
    return;
  }
  LimitReading reading{.at = at,
                       .usage = *usage,
                       .max = watched.max,
                       .held = std::nullopt,
                       .reclaimed = limit_reclaim_.done(id).bytes};
  if (judge_limits::is_near_limit(reading) || watched.history.original)
    if (const auto cache = page_cache(watched.stat))
      reading.held = std::max<std::int64_t>(*usage - *cache, 0);
  const judge_limits::LimitPlan plan = make_plan(id, watched, reading);
  watched.near = reading.held.has_value();
  const auto count = static_cast<Duration::rep>(near_);
  watched.due = at + std::max(plan.next, reading.held ? kShareOfOne * count : plan.next);
  if (plan.raise_to) raise(id, watched, *plan.raise_to);
  if (plan.lower_to) lower(id, watched, *plan.lower_to);
  brake(id, watched, plan.brake);
  if (plan.reclaim > 0) reclaim(id, watched, plan.reclaim, at);
}

judge_limits::LimitPlan PodMemoryWorker::make_plan(CgroupId id, Watched& watched,
                                                   const LimitReading& reading) {
  const judge_limits::LimitHistory before =
      std::exchange(watched.history, judge_limits::advance(watched.history, reading));
  const bool needs_room = watched.history.original ||
                          judge_limits::wants_raise(active_.limits, reading, watched.history);
  const auto left = needs_room ? room(reading.at) : std::nullopt;
  const auto made = judge_limits::plan_limit(active_.limits, reading, watched.history, left);
  if (reading.held) plans_->add({id, active_.limits, before, reading, left, made});
  return made;
}

// Of what the node has above its threshold, less what earlier raises may still take.
std::optional<std::int64_t> PodMemoryWorker::room(Instant at) {
  if (at - room_read_at_ >= kRoomHold) {
    room_read_at_ = at;
    Observations all{};
    node_.read_memory(all);
    const auto& memory = of(all, Signal::kMemoryAvailable);
    const auto& kernel = of(all, Signal::kKernelMemAvailable);
    room_.reset();
    if (memory && kernel) room_ = std::min(memory->available, kernel->available) - active_.reserved;
  }
  return room_ ? std::optional(*room_ - granted()) : std::nullopt;
}

std::int64_t PodMemoryWorker::granted() const {
  std::int64_t bytes = 0;
  for (const auto& [id, watched] : watched_)
    if (watched.history.original && watched.history.last)
      bytes += std::max<std::int64_t>(
          watched.max - std::max(watched.history.last->usage, *watched.history.original), 0);
  return bytes;
}

void PodMemoryWorker::raise(CgroupId id, Watched& watched, std::int64_t to) {
  const std::int64_t original = watched.history.original.value_or(watched.max);
  const bool first = !watched.history.original;
  const int error = overrides_.raise(id, watched.directory->get(), watched.path, Bytes{to},
                                     Bytes{judge_limits::ceiling_of(active_.limits, original)});
  if (error != 0) {
    ++totals_.failed;
    watched.history.original.reset();
    if (const auto max = memory_max_of(*watched.directory)) watched.max = *max;
    return;
  }
  if (first)
    log::info("{}: memory.max was {} and is reached; raised while the node has room, to {} at most",
              watched.path, report::human_bytes(original),
              report::human_bytes(judge_limits::ceiling_of(active_.limits, original)));
  ++totals_.raised;
  watched.max = to;
  watched.history.original = original;
  watched.history.raised_at = observe::now();
}

void PodMemoryWorker::lower(CgroupId id, Watched& watched, std::int64_t to) {
  const int error = overrides_.lower(id, watched.directory->get(), Bytes{to});
  if (error != 0) {
    ++(error == EAGAIN ? totals_.postponed : totals_.failed);
    watched.due += kLowerPause;
    return;
  }
  ++totals_.lowered;
  const auto original = overrides_.original(id);
  if (original)
    watched.max = to;
  else if (const auto max = memory_max_of(*watched.directory))
    watched.max = *max;
  if (!original) watched.history.original.reset();
}

void PodMemoryWorker::brake(CgroupId id, const Watched& watched, Brake brake) {
  const bool follows = brake == Brake::kKeep && overrides_.has_brake(id);
  if (brake == Brake::kOff) (void)overrides_.release_brake(id, watched.directory->get());
  if (brake == Brake::kOn || follows)
    (void)overrides_.set_brake(
        id, watched.directory->get(), watched.path, Bytes{judge_limits::brake_of(watched.max)},
        Bytes{judge_limits::ceiling_of(active_.limits,
                                       watched.history.original.value_or(watched.max))});
}

void PodMemoryWorker::reclaim(CgroupId id, Watched& watched, std::int64_t bytes, Instant at) {
  if (limit_reclaim_.done(id).error != 0 && at - watched.reclaimed_at < kReclaimPause) return;
  if (limit_reclaim_.submit({.cgroup = id, .directory = watched.directory, .bytes = Bytes{bytes}}))
    watched.reclaimed_at = at;
}

void PodMemoryWorker::push_cold_memory() {
  std::map<CgroupId, judge_limits::ColdHistory> kept;
  for (const PodMemoryRequest::OverRequest& pod : active_.over_request) {
    const act::ReclaimThreads::Done done = cold_reclaim_.done(pod.id);
    judge_limits::ColdHistory& history = kept[pod.id] = cold_[pod.id];
    cold_.erase(pod.id);
    if (done.running) continue;
    const std::int64_t bytes = judge_limits::plan_cold(active_.cold,
                                                       {.at = observe::now(),
                                                        .usage = pod.usage,
                                                        .request = pod.request,
                                                        .refaulted = pod.refaulted,
                                                        .pushed = done.bytes,
                                                        .wanted = active_.cold_wanted,
                                                        .swap_room = pod.swap_room},
                                                       history);
    if (bytes == 0) continue;
    auto directory = std::make_shared<Fd>(headroom::open_cgroup(root_.native() + pod.path, pod.id));
    if (*directory)
      cold_reclaim_.submit({.cgroup = pod.id,
                            .directory = directory,
                            .bytes = Bytes{bytes},
                            .swappiness = active_.cold.swappiness,
                            .within_swap_high = true});
  }
  for (const auto& [id, history] : cold_) {
    cold_cost_of_gone_ += history.cost;
    cold_reclaim_.forget(id);
  }
  cold_ = std::move(kept);
}

void PodMemoryWorker::publish() {
  totals_.background_reclaimed = limit_reclaim_.total();
  totals_.cold_pushed = cold_reclaim_.total();
  totals_.cold_returned = cold_cost_of_gone_;
  for (const auto& [id, history] : cold_)
    totals_.cold_returned += history.cost;
  totals_.raised_now = 0;
  totals_.raised_bytes = 0;
  for (const auto& [id, watched] : watched_)
    if (watched.history.original && watched.max > *watched.history.original) {
      ++totals_.raised_now;
      totals_.raised_bytes += static_cast<std::uint64_t>(watched.max - *watched.history.original);
    }
  published_.set(totals_);
}

}  // namespace headroom::daemon
