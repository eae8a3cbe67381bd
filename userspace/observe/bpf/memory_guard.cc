// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/memory_guard.h"

#include "guard.skel.h"
#include "observe/node/capacity.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace headroom::observe {
namespace {

int take(void*, void*, std::size_t) {
  return 0;
}

}  // namespace

void MemoryGuard::DestroyProgram::operator()(guard_bpf* program) const {
  guard_bpf__destroy(program);
}

void MemoryGuard::FreeRing::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

MemoryGuard::~MemoryGuard() = default;

Result<std::unique_ptr<MemoryGuard>> MemoryGuard::open(const Options& options) {
  std::unique_ptr<MemoryGuard> guard(new MemoryGuard);
  if (auto loaded = guard->load(options); !loaded)
    return failure("watch memory between looks: " + loaded.error().what, loaded.error().code);
  return guard;
}

Result<> MemoryGuard::load(const Options& options) {
  const LibbpfLog log(options.log);
  program_.reset(guard_bpf__open());
  if (!program_) return errno_failure("open the program", errno);
  const_cast<hr_guard_config&>(program_->rodata->config).nodes = possible_nodes(options.sys);
  if (const int error = guard_bpf__load(program_.get()); error != 0)
    return failure("load the program: " + log.reason(-error), -error);
  ring_.reset(ring_buffer__new(bpf_map__fd(program_->maps.wakeups), &take, nullptr, nullptr));
  if (!ring_) return errno_failure("map the ring of wakes", errno);
  page_size_ = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return request(0, {});
}

Result<> MemoryGuard::request(std::uint64_t pages, const Pace& pace) {
  hr_guard_request request{
      .pages = pages,
      .pages_per_second = static_cast<std::uint64_t>(pace.bytes_per_second) / page_size_,
      .floor_ns = static_cast<std::uint64_t>(pace.floor.count()),
      .ceiling_ns = static_cast<std::uint64_t>(pace.ceiling.count())};
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &request, .ctx_size_in = sizeof request);
  const int error = bpf_prog_test_run_opts(bpf_program__fd(program_->progs.arm), &run);
  if (error != 0) return errno_failure("run the program", -error);
  if (run.retval == 1) return failure("the machine's memory nodes are not found", ENODATA);
  if (run.retval != 0) return failure("no timer is to be had", ENOTSUP);
  return {};
}

bool MemoryGuard::arm(Bytes left, const Pace& pace) {
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(left.count, 0));
  const bool armed = request(std::max<std::uint64_t>(bytes / page_size_, 1), pace).has_value();
  if (!armed) ++arm_failures_;
  return armed;
}

void MemoryGuard::disarm() {
  if (!request(0, {})) ++arm_failures_;
}

int MemoryGuard::descriptor() const {
  return ring_buffer__epoll_fd(ring_.get());
}

std::size_t MemoryGuard::drain() {
  const int wakeups = ring_buffer__consume(ring_.get());
  return wakeups > 0 ? static_cast<std::size_t>(wakeups) : 0;
}

std::uint64_t MemoryGuard::checks() const {
  return program_->bss->counts.checks;
}

MemoryAlarm::Look MemoryGuard::latest_look() const {
  const hr_guard_counts& counts = program_->bss->counts;
  // The time first: the program writes it last, so the pages are no older.
  const hr_u64 at = __atomic_load_n(&counts.looked_at_ns, __ATOMIC_ACQUIRE);
  const hr_u64 pages = __atomic_load_n(&counts.pages, __ATOMIC_RELAXED);
  const hr_u64 available = __atomic_load_n(&counts.available, __ATOMIC_RELAXED);
  return {Instant(Duration(static_cast<std::int64_t>(at))),
          Bytes{static_cast<std::int64_t>(pages * page_size_)},
          Bytes{static_cast<std::int64_t>(available * page_size_)}};
}

std::uint64_t MemoryGuard::nodes() const {
  return program_->bss->counts.nodes;
}

std::uint64_t MemoryGuard::wakeups() const {
  return program_->bss->counts.wakeups;
}

std::uint64_t MemoryGuard::lost() const {
  return program_->bss->counts.lost;
}

}  // namespace headroom::observe
