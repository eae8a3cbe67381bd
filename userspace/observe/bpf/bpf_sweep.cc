// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/bpf_sweep.h"

#include "sweep.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <string>

namespace headroom::observe {
namespace {

struct CloseDir {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Of a set: the order does not matter.
std::uint64_t add_to_signature(std::uint64_t signature, std::uint64_t id) {
  return signature + id * 0x9e3779b97f4a7c15ull + 1;
}

}  // namespace

void IoFlush::flush() {
  for (const Fd& io_stat : io_stats_) {
    std::array<char, 64> few;  // the whole is made, and flushed, whatever is asked of it
    (void)!pread(io_stat.get(), few.data(), few.size(), 0);
  }
}

void IoFlush::update_io_stats(std::span<const hr_record> records) {
  if (records.empty()) return;
  const std::uint64_t root = records.front().id;
  std::uint64_t signature = 0;
  for (const hr_record& record : records)
    if (record.parent_id == root) signature = add_to_signature(signature, record.id);
  if (signature != signature_) open_io_stats(signature);
}

void IoFlush::open_io_stats(std::uint64_t signature) {
  up_to_date_ = false;
  Fd readable(openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, CloseDir> directory(readable ? fdopendir(readable.get()) : nullptr);
  if (!directory) return;  // looked for again at the next sweep
  readable.release();      // closedir() closes it
  io_stats_.clear();
  while (const dirent* child = readdir(directory.get())) {
    if (child->d_type != DT_DIR || child->d_name[0] == '.') continue;
    const std::string path = std::string(child->d_name) + "/io.stat";
    Fd io_stat(openat(root_.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
    if (io_stat) io_stats_.push_back(std::move(io_stat));
  }
  signature_ = signature;
  up_to_date_ = true;
}

namespace {

tl::unexpected<Error> load_failure(const LibbpfLog& log, int code) {
  return failure("load the sweep program: " + log.reason(code), code);
}

// For so many cgroups a program may keep its CPU from other tasks: a millisecond or two.
constexpr std::uint32_t kMaxCssIterCgroups = 4096;

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
  // After a pass that lost cgroups the tree is large: the first pass iterates over single cgroups.
  if (options.last_pass > 0) {
    source->last_.lost = options.capacity;
    source->last_.number = options.last_pass;
  }
  if (auto loaded = source->load(options); !loaded) return tl::make_unexpected(loaded.error());
  if (auto attached = source->attach(options.root); !attached)
    return tl::make_unexpected(attached.error());
  if (auto mapped = source->map_records(); !mapped) return tl::make_unexpected(mapped.error());
  return source;
}

BpfSweep::~BpfSweep() {
  if (records_) munmap(records_, whole_pages(capacity_ * sizeof(hr_record)));
  if (change_stamps_) munmap(change_stamps_, whole_pages(capacity_ * sizeof(hr_change_stamp)));
  link_.reset();
  css_iter_link_.reset();
  if (program_) sweep_bpf__destroy(program_);
}

// A kernel may have the way to take a tree at once and yet refuse the program (6.7, 6.8).
Result<> BpfSweep::load(const Options& options) {
  const KernelFacts facts = kernel_facts(options.index_table, options.log);
  indices_ = {facts.state, facts.events};
  const bool css_iter = options.css_iter && facts.kfuncs & HR_KFUNC_CSS_ITER;
  if (css_iter && load(options, facts, true)) return {};
  return load(options, facts, false);
}

Result<> BpfSweep::load(const Options& options, const KernelFacts& facts, bool css_iter) {
  LibbpfLog log(options.log);
  if (program_) sweep_bpf__destroy(program_);
  program_ = sweep_bpf__open();
  if (!program_) return load_failure(log, errno);
  bpf_program__set_autoload(program_->progs.sweep_css_iter, css_iter);
  auto& config = const_cast<hr_sweep_config&>(program_->rodata->config);
  config.groups = groups_;
  config.kfuncs = facts.kfuncs;
  config.page_shift =
      static_cast<hr_u32>(std::countr_zero(static_cast<unsigned long>(sysconf(_SC_PAGESIZE))));
  std::copy(facts.index.begin(), facts.index.end(), config.index);
  const_cast<std::uint32_t&>(program_->rodata->io_devices) = options.io_devices;
  for (bpf_map* map : {program_->maps.records, program_->maps.change_stamps})
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

  const auto attach = [&](const bpf_program* program, bpf_cgroup_iter_order order) {
    bpf_iter_link_info where{};
    where.cgroup.order = order;
    where.cgroup.cgroup_fd = static_cast<__u32>(above_zero.get());
    DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &where,
                        .link_info_len = sizeof where);
    return std::unique_ptr<bpf_link, DestroyLink>(bpf_program__attach_iter(program, &opts));
  };
  link_ = attach(program_->progs.sweep, BPF_CGROUP_ITER_DESCENDANTS_PRE);
  if (!link_) return errno_failure("attach the sweep to " + root.string(), errno);
  if (bpf_program__autoload(program_->progs.sweep_css_iter))
    css_iter_link_ = attach(program_->progs.sweep_css_iter, BPF_CGROUP_ITER_SELF_ONLY);

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
  const auto change_stamps =
      map_all(program_->maps.change_stamps, capacity_ * sizeof(hr_change_stamp));
  if (!change_stamps) return tl::make_unexpected(change_stamps.error());
  change_stamps_ = static_cast<hr_change_stamp*>(*change_stamps);
  return {};
}

Result<> BpfSweep::read_pass() {
  // The first pass finds out how large the tree is.
  const bool css_iter =
      css_iter_link_ && last_.number > 0 && last_.next + last_.lost <= kMaxCssIterCgroups;
  const Fd iterator(bpf_iter_create(bpf_link__fd(css_iter ? css_iter_link_.get() : link_.get())));
  if (!iterator) return errno_failure("start a pass over the cgroups", errno);
  std::array<char, 64> nothing;  // the program prints nothing: one read is the whole pass
  ssize_t got;
  do
    got = ::read(iterator.get(), nothing.data(), nothing.size());
  while (got < 0 && errno == EINTR && program_->bss->pass.next == 0);
  if (got < 0) return errno_failure("read a pass over the cgroups", errno);
  return {};
}

std::span<const std::uint32_t> BpfSweep::incomplete_io() const {
  const auto& incomplete = program_->bss->incomplete_io;
  return {incomplete,
          std::min<std::size_t>(program_->bss->incomplete_io_count, std::size(incomplete))};
}

Result<std::span<const hr_record>> BpfSweep::sweep() {
  hr_sweep_pass& pass = program_->bss->pass;
  // The first sweep shows whether the program flushes memory.stat itself; until then it is flushed
  // here too.
  if (memory_stat_ && !(pass.flushed & HR_MEMORY_STAT)) {
    std::array<char, 64> few;  // the file is made, and the stats flushed, whatever is asked of it
    (void)!pread(memory_stat_.get(), few.data(), few.size(), 0);
  }
  if (io_flush_) io_flush_->flush();
  pass.next = pass.lost = pass.idle_skipped = pass.reassigned = 0;
  program_->bss->incomplete_io_count = 0;
  pass.number = last_.number + 1;
  pass.mask = idle_mask_;
  pass.share = pass.number & idle_mask_;
  pass.compare_usage = compare_usage_;

  const auto read = read_pass();
  same_ = read && pass.reassigned == 0 && pass.next == last_.next;
  last_ = pass;
  lost_ += last_.lost;
  if (!read) return tl::make_unexpected(read.error());
  if (io_flush_ && !(same_ && io_flush_->up_to_date()))
    io_flush_->update_io_stats({records_, last_.next});
  return std::span<const hr_record>(records_, last_.next);
}

}  // namespace headroom::observe
