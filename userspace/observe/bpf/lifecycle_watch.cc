// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/lifecycle_watch.h"

#include "base/log/journal.h"
#include "lifecycle.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

namespace headroom::observe {

void LifecycleWatch::DestroyProgram::operator()(lifecycle_bpf* program) const {
  lifecycle_bpf__destroy(program);
}

void LifecycleWatch::FreeRing::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

Result<std::unique_ptr<LifecycleWatch>> LifecycleWatch::open(const Options& options) {
  std::unique_ptr<LifecycleWatch> watch(new LifecycleWatch);
  if (auto loaded = watch->load(options); !loaded)
    return failure("watch cgroups come and go: " + loaded.error().what, loaded.error().code);
  return watch;
}

LifecycleWatch::~LifecycleWatch() {
  links_.clear();
}

Result<> LifecycleWatch::load(const Options& options) {
  const auto open = [&]() -> Result<bpf_object*> {
    program_.reset(lifecycle_bpf__open());
    if (!program_) return errno_failure("open the program", errno);
    const_cast<hr_watch_config&>(program_->rodata->config).hierarchy = options.hierarchy;
    return program_->obj;
  };
  auto attached = attach_loadable({.open = open,
                                   .load = [&] { return lifecycle_bpf__load(program_.get()); },
                                   .required = {},
                                   .unwanted = {},
                                   .log = options.log});
  if (!attached) return tl::make_unexpected(attached.error());
  links_ = std::move(attached->links);
  skipped_programs_ = std::move(attached->skipped_programs);
  if (links_.empty())
    return failure(skipped_programs_.empty() ? "nothing to attach" : skipped_programs_.front().why);
  ring_.reset(ring_buffer__new(bpf_map__fd(program_->maps.events), &take, this, nullptr));
  if (!ring_) return errno_failure("map the ring of events", errno);
  return {};
}

int LifecycleWatch::take(void* watch, void* event, std::size_t size) {
  if (size < sizeof(hr_event)) return 0;
  log::log_exceptions("handle an event of the kernel", [&] {
    (*static_cast<LifecycleWatch*>(watch)->on_event_)(*static_cast<const hr_event*>(event));
  });
  return 0;
}

int LifecycleWatch::descriptor() const {
  return ring_buffer__epoll_fd(ring_.get());
}

std::size_t LifecycleWatch::drain(const OnEvent& on_event) {
  on_event_ = &on_event;
  const int events = ring_buffer__consume(ring_.get());
  return events > 0 ? static_cast<std::size_t>(events) : 0;
}

bool LifecycleWatch::watch_exits(CgroupId killed) {
  const std::uint64_t marked = 1;
  const int error =
      bpf_map_update_elem(bpf_map__fd(program_->maps.killed), &killed.value, &marked, BPF_NOEXIST);
  if (error == -EEXIST) return true;
  if (error) {
    ++unwatched_;
    return false;
  }
  ++program_->bss->killed_count;
  return true;
}

void LifecycleWatch::forget_exits(CgroupId killed) {
  if (bpf_map_delete_elem(bpf_map__fd(program_->maps.killed), &killed.value) == 0)
    --program_->bss->killed_count;
}

std::uint64_t LifecycleWatch::lost() const {
  return program_->bss->losses.ring;
}

}  // namespace headroom::observe
