// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf_sweep.h"

#include "sweep.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <string>

namespace headroom::observe {
namespace {

tl::unexpected<Error> load_failure(const LibbpfLog& log, int code) {
  return failure("load the sweep program: " + log.reason(code), code);
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Writable, so that what BPF does not know can be filled in place. Populated now: the first sweep
// under pressure must not be the one that faults these pages in.
Result<void*> map_all(const bpf_map* map, std::size_t bytes) {
  void* memory = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, bpf_map__fd(map), 0);
  if (memory == MAP_FAILED) return errno_failure("map the sweep's records", errno);
  return memory;
}

}  // namespace

Result<std::unique_ptr<BpfSweep>> BpfSweep::open(const Options& options) {
  std::unique_ptr<BpfSweep> source(new BpfSweep);
  source->groups_ = options.groups;
  source->capacity_ = options.capacity;
  if (auto loaded = source->load(options); !loaded) return tl::make_unexpected(loaded.error());
  if (auto attached = source->attach(options.root); !attached)
    return tl::make_unexpected(attached.error());
  if (auto mapped = source->map_records(); !mapped) return tl::make_unexpected(mapped.error());
  return source;
}

BpfSweep::~BpfSweep() {
  if (records_) munmap(records_, whole_pages(capacity_ * sizeof(hr_record)));
  if (marks_) munmap(marks_, whole_pages(capacity_ * sizeof(hr_mark)));
  if (link_) bpf_link__destroy(link_);
  if (program_) sweep_bpf__destroy(program_);
}

Result<> BpfSweep::load(const Options& options) {
  LibbpfLog log(options.log);
  const KernelFacts facts = kernel_facts(options.index_table);
  indices_ = {facts.state, facts.events};
  program_ = sweep_bpf__open();
  if (!program_) return load_failure(log, errno);
  auto& config = const_cast<hr_sweep_config&>(program_->rodata->config);
  config.groups = groups_;
  config.kfuncs = facts.kfuncs;
  config.page_shift =
      static_cast<hr_u32>(std::countr_zero(static_cast<unsigned long>(sysconf(_SC_PAGESIZE))));
  std::copy(facts.index.begin(), facts.index.end(), config.index);
  for (bpf_map* map : {program_->maps.records, program_->maps.marks})
    if (int error = bpf_map__set_max_entries(map, capacity_); error)
      return load_failure(log, -error);
  if (int error = sweep_bpf__load(program_); error) return load_failure(log, -error);
  return {};
}

Result<> BpfSweep::attach(const std::filesystem::path& root) {
  // The link takes its own reference to the cgroup. Descriptor 0 would mean "not given".
  Fd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_failure("open " + root.string(), errno);
  Fd above_zero(fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
  if (!above_zero) return errno_failure("duplicate " + root.string(), errno);

  bpf_iter_link_info where{};
  where.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
  where.cgroup.cgroup_fd = static_cast<__u32>(above_zero.get());
  DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &where,
                      .link_info_len = sizeof where);
  link_ = bpf_program__attach_iter(program_->progs.sweep, &opts);
  if (!link_) return errno_failure("attach the sweep to " + root.string(), errno);
  link_fd_ = bpf_link__fd(link_);

  // Absent without a memory controller, and then there is nothing to flush.
  if (groups_ & (HR_MEMORY_STAT | HR_RECLAIM))
    memory_stat_.reset(openat(directory.get(), "memory.stat", O_RDONLY | O_CLOEXEC));
  const bool flushed_with_the_rest = program_->rodata->config.kfuncs & HR_KFUNC_CGROUP_FLUSH;
  if ((groups_ & HR_IO) && !flushed_with_the_rest) io_flush_.emplace(std::move(directory));
  return {};
}

Result<> BpfSweep::map_records() {
  const auto records = map_all(program_->maps.records, capacity_ * sizeof(hr_record));
  if (!records) return tl::make_unexpected(records.error());
  records_ = static_cast<hr_record*>(*records);
  const auto marks = map_all(program_->maps.marks, capacity_ * sizeof(hr_mark));
  if (!marks) return tl::make_unexpected(marks.error());
  marks_ = static_cast<hr_mark*>(*marks);
  return {};
}

Result<std::span<const hr_record>> BpfSweep::sweep() {
  hr_sweep_pass& pass = program_->bss->pass;
  // The first pass tells whether the program flushes memory.stat itself; a flush too many then.
  if (memory_stat_ && !(pass.flushed & HR_MEMORY_STAT)) {
    std::array<char, 64> few;  // the file is made, and the stats flushed, whatever is asked of it
    (void)!pread(memory_stat_.get(), few.data(), few.size(), 0);
  }
  if (io_flush_) io_flush_->flush();
  pass.next = pass.lost = pass.rested = pass.moved = 0;
  pass.number = last_.number + 1;
  pass.mask = resting_;
  pass.share = pass.number & resting_;
  pass.closely = closely_;

  const int iterator = bpf_iter_create(link_fd_);
  if (iterator < 0) return errno_failure("start a pass over the cgroups", -iterator);
  std::array<char, 64> nothing;  // the program prints nothing: one read is the whole pass
  ssize_t got;
  do
    got = ::read(iterator, nothing.data(), nothing.size());
  while (got < 0 && errno == EINTR && pass.next == 0);
  const int error = got < 0 ? errno : 0;
  close(iterator);

  same_ = !error && pass.moved == 0 && pass.next == last_.next;
  last_ = pass;
  lost_ += last_.lost;
  if (error) return errno_failure("read a pass over the cgroups", error);
  if (io_flush_ && !(same_ && io_flush_->settled())) io_flush_->learn({records_, last_.next});
  return std::span<const hr_record>(records_, last_.next);
}

}  // namespace headroom::observe
