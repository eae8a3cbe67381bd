// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/wait_watch.h"

#include "observe/node/capacity.h"
#include "stall.skel.h"
#include "throttle.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace headroom::observe {
namespace {

constexpr std::uint32_t kFirstRoom = 256;

// Without the brackets nothing is timed; without the causes a pod's own limit would pass for the
// node's. Compaction is another matter: a kernel built without it does not wait for it.
constexpr std::array<std::string_view, 5> kMemstall{"enter", "leave", "direct_reclaim",
                                                    "limit_reclaim", "gone"};
constexpr std::array<std::string_view, 3> kNotMemstall{"direct_reclaimed", "memcg_reclaim",
                                                       "memcg_reclaimed"};
constexpr std::array<std::string_view, 5> kReclaim{"direct_reclaim", "direct_reclaimed",
                                                   "memcg_reclaim", "memcg_reclaimed", "gone"};
constexpr std::array<std::string_view, 4> kNotReclaim{"enter", "leave", "limit_reclaim",
                                                      "compaction"};
constexpr std::array<std::string_view, 3> kThrottle{"throttle", "unthrottle", "gone"};

struct Programs {
  std::span<const std::string_view> required;
  std::span<const std::string_view> unwanted;
};

struct Stall {
  using Skeleton = stall_bpf;
  using Value = hr_stalls;
  static constexpr auto kOpen = &stall_bpf__open;
  static constexpr auto kLoad = &stall_bpf__load;
  static constexpr auto kDestroy = &stall_bpf__destroy;
  static bpf_map* map(const Skeleton& program) { return program.maps.stalls; }
  static bpf_map* more(const Skeleton& program) { return program.maps.more_stalls; }
  static std::uint64_t* memory_nodes(const Skeleton& program) {
    return reinterpret_cast<std::uint64_t*>(&program.bss->memory_nodes);
  }
};

struct Throttle {
  using Skeleton = throttle_bpf;
  using Value = hr_throttles;
  static constexpr auto kOpen = &throttle_bpf__open;
  static constexpr auto kLoad = &throttle_bpf__load;
  static constexpr auto kDestroy = &throttle_bpf__destroy;
  static bpf_map* map(const Skeleton& program) { return program.maps.throttles; }
  static bpf_map* more(const Skeleton& program) { return program.maps.more_throttles; }
  static std::uint64_t* memory_nodes(const Skeleton&) { return nullptr; }
};

template <class Program>
Result<std::unique_ptr<WaitWatch<typename Program::Value>>> watch(std::string_view doing,
                                                                  const Programs& programs,
                                                                  const WaitOptions& options) {
  std::shared_ptr<typename Program::Skeleton> program;
  const auto open = [&]() -> Result<bpf_object*> {
    program.reset();
    typename Program::Skeleton* opened = Program::kOpen();
    if (!opened) return errno_failure("open the program", errno);
    program.reset(opened, Program::kDestroy);
    auto& config = const_cast<hr_watch_config&>(program->rodata->config);
    config.hierarchy = options.hierarchy;
    config.stall_source = options.reclaim_only ? HR_STALL_SOURCE_RECLAIM : HR_STALL_SOURCE_MEMSTALL;
    if (const int error = bpf_map__set_max_entries(Program::map(*program), options.capacity); error)
      return errno_failure("size the map", -error);
    if (const int error = bpf_map__set_max_entries(Program::more(*program), options.more_capacity);
        error)
      return errno_failure("size the map", -error);
    // Each CPU keeps some entries for itself, so that no wait is dropped half-way.
    const auto in_flight =
        std::max(8192u, 256u * static_cast<unsigned>(libbpf_num_possible_cpus()));
    if (const int error = bpf_map__set_max_entries(program->maps.waiting, in_flight); error)
      return errno_failure("size the map", -error);
    return program->obj;
  };
  auto attached = attach_loadable({.open = open,
                                   .load = [&] { return Program::kLoad(program.get()); },
                                   .required = programs.required,
                                   .unwanted = programs.unwanted,
                                   .log = options.log});
  if (!attached)
    return failure(std::string(doing) + ": " + attached.error().what, attached.error().code);
  return std::make_unique<WaitWatch<typename Program::Value>>(
      typename WaitWatch<typename Program::Value>::Parts{
          .program = program,
          .links = std::move(attached->links),
          .skipped_programs = std::move(attached->skipped_programs),
          .maps = {bpf_map__fd(Program::map(*program)), bpf_map__fd(Program::more(*program))},
          .capacity = options.capacity + options.more_capacity,
          .complete = !options.reclaim_only,
          .node = &program->bss->node,
          .removed_cgroups = &program->bss->removed_cgroups,
          .losses = &program->bss->losses,
          .memory_nodes = Program::memory_nodes(*program)});
}

}  // namespace

template <class Value>
Result<ByCgroup<Value>> WaitWatch<Value>::read() {
  const Sum now = sum();
  if (!read_at_ || std::memcmp(&now, &*read_at_, sizeof now) != 0) {
    read_at_.reset();
    std::size_t listed = 0;
    for (const int map : parts_.maps) {
      const auto got = read_map(map, listed);
      if (!got) return tl::make_unexpected(got.error());
      listed = *got;
    }
    got_ = listed;
    read_at_ = now;
  }
  return ByCgroup<Value>{std::span(ids_).first(got_), std::span(values_).first(got_), lost()};
}

// Appends to the first `got`; returns how many there are then.
template <class Value>
Result<std::size_t> WaitWatch<Value>::read_map(int map, std::size_t got) {
  std::uint32_t position = 0;
  bool more = true;
  for (bool first = true; more; first = false) {
    if (got == ids_.size()) {
      const std::size_t room = std::max<std::size_t>(kFirstRoom, ids_.size() * 2);
      ids_.resize(room);
      values_.resize(room);
    }
    auto count = static_cast<std::uint32_t>(ids_.size() - got);
    const int result =
        bpf_map_lookup_batch(map, first ? nullptr : &position, &position, ids_.data() + got,
                             values_.data() + got, &count, nullptr);
    // The next bucket did not fit, and nothing before it was left to copy: more room.
    if (result == -ENOSPC) {
      ids_.resize(ids_.size() * 2);
      values_.resize(ids_.size());
      if (ids_.size() > 4 * std::size_t{parts_.capacity} + kFirstRoom)
        return errno_failure("read what cgroups waited for", ENOSPC);
    } else if (result < 0 && result != -ENOENT) {
      return errno_failure("read what cgroups waited for", -result);
    }
    got += count;
    more = result != -ENOENT;  // which comes with the last of them
  }
  return got;
}

template class WaitWatch<hr_stalls>;
template class WaitWatch<hr_throttles>;

Result<std::unique_ptr<StallWatch>> watch_stalls(const WaitOptions& options) {
  constexpr std::string_view kDoing = "watch stalls";
  if (options.reclaim_only) return watch<Stall>(kDoing, {kReclaim, kNotReclaim}, options);
  auto complete = watch<Stall>(kDoing, {kMemstall, kNotMemstall}, options);
  if (complete) return complete;
  WaitOptions less = options;
  less.reclaim_only = true;
  auto reclaim = watch_stalls(less);
  if (!reclaim) return complete;  // its reason is the more telling
  (*reclaim)->note({.program = "memstall", .why = complete.error().what});
  return reclaim;
}

Result<std::unique_ptr<ThrottleWatch>> watch_throttles(const WaitOptions& options) {
  return watch<Throttle>("watch throttling", {kThrottle, {}}, options);
}

namespace {

template <class Value>
void read_cgroups(WaitWatch<Value>& watch, std::optional<ByCgroup<Value>>& into,
                  std::uint64_t& failed) {
  if (auto read = watch.read())
    into = *read;
  else
    ++failed;
}

}  // namespace

void KernelWaits::update_memory_nodes() {
  if (stalls_) stalls_->set_memory_nodes(memory_nodes());
}

Waits KernelWaits::read(SnapshotScope depth) {
  Waits waits;
  if (stalls_) {
    waits.node_stalls = &stalls_->node();
    if (depth != SnapshotScope::kNode) read_cgroups(*stalls_, waits.stalls, failed_);
    if (depth == SnapshotScope::kCgroups && ++reads_ % kReadsPerUpdate == 0) update_memory_nodes();
  }
  if (throttles_) {
    waits.node_throttles = &throttles_->node().waits;
    if (depth != SnapshotScope::kNode) read_cgroups(*throttles_, waits.throttles, failed_);
  }
  return waits;
}

}  // namespace headroom::observe
