// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/bpf_sweep.h"

#include "base/clock.h"
#include "sweep.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

// The root alone has no cgroup.events.
IoFlush::IoFlush(Fd root)
    : root_(std::move(root)), top_only_(faccessat(root_.get(), "cgroup.events", F_OK, 0) == 0) {
  if (!top_only_) return;
  Fd io_stat(openat(root_.get(), "io.stat", O_RDONLY | O_CLOEXEC));
  if (io_stat) io_stats_.push_back(std::move(io_stat));
}

void IoFlush::flush() {
  for (const Fd& io_stat : io_stats_) {
    std::array<char, 64> few;  // the whole is made, and flushed, whatever is asked of it
    (void)!pread(io_stat.get(), few.data(), few.size(), 0);
  }
}

void IoFlush::update_io_stats(std::span<const hr_record> records) {
  if (top_only_ || records.empty()) return;
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
  source->call_limit_ = options.call_limit;
  source->last_.number = options.last_pass;
  if (auto loaded = source->load(options); !loaded) return tl::make_unexpected(loaded.error());
  if (auto mapped = source->map_records(); !mapped) return tl::make_unexpected(mapped.error());
  return source;
}

BpfSweep::~BpfSweep() {
  if (records_) munmap(records_, whole_pages(capacity_ * sizeof(hr_record)));
  if (change_stamps_) munmap(change_stamps_, whole_pages(capacity_ * sizeof(hr_change_stamp)));
  link_.reset();
  flush_.reset();
  flush_link_.reset();
  note_links_.clear();
  if (program_) sweep_bpf__destroy(program_);
}

// A kernel may have the functions and yet refuse the program (6.7 to 6.9), or run it and not tell
// it the root of the tree.
Result<> BpfSweep::load(const Options& options) {
  const KernelFacts facts = kernel_facts(options.index_table, options.log);
  indices_ = {facts.state, facts.events};
  if (options.by_call && facts.kfuncs & HR_KFUNC_CSS_ITER) {
    by_call_ = true;
    if (load_best(options, facts) && attach(options.root)) return {};
    by_call_ = false;
  }
  auto loaded = load(options, facts);
  if (!loaded && program_ && bpf_program__autoload(program_->progs.sweep_flush_own)) {
    flush_refused_ = true;
    loaded = load(options, facts);
  }
  return loaded ? attach(options.root) : loaded;
}

// With what notes the updated cgroups, if the kernel has it.
Result<> BpfSweep::load_best(const Options& options, const KernelFacts& facts) {
  constexpr std::uint32_t kFlushes = HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH;
  notes_updates_ = options.updated_only && facts.has_rstat_hook && facts.kfuncs & kFlushes;
  if (!notes_updates_) return load(options, facts);
  const auto loaded = load(options, facts);
  if (loaded) return {};
  notes_updates_ = false;
  updated_refused_ = loaded.error().what;
  return load(options, facts);
}

Result<> BpfSweep::load(const Options& options, const KernelFacts& facts) {
  LibbpfLog log(options.log);
  if (program_) sweep_bpf__destroy(program_);
  program_ = sweep_bpf__open();
  if (!program_) return load_failure(log, errno);
  const bool flushes = facts.kfuncs & (HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH | HR_KFUNC_MEMCG);
  bpf_program__set_autoload(program_->progs.sweep, !by_call_);
  bpf_program__set_autoload(program_->progs.sweep_call, by_call_);
  bpf_program__set_autoload(program_->progs.sweep_flush, flushes && by_call_);
  bpf_program__set_autoload(program_->progs.sweep_flush_own,
                            flushes && !by_call_ && !flush_refused_);
  for (bpf_program* each :
       {program_->progs.sweep_flushed, program_->progs.sweep_populated, program_->progs.sweep_made,
        program_->progs.sweep_removed, program_->progs.sweep_updated, program_->progs.sweep_number})
    bpf_program__set_autoload(each, notes_updates_);
  bpf_map__set_autocreate(program_->maps.numbers, notes_updates_);
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
  if (int error = bpf_map__set_max_entries(program_->maps.update_bits, capacity_ / 64 + 1); error)
    return load_failure(log, -error);
  if (int error = sweep_bpf__load(program_); error) return load_failure(log, -error);
  return {};
}

Result<> BpfSweep::attach_iterator(int root) {
  // The link takes its own reference to the cgroup. Descriptor 0 would mean "not given".
  const Fd above_zero(fcntl(root, F_DUPFD_CLOEXEC, 3));
  if (!above_zero) return errno_failure("duplicate a descriptor", errno);
  bpf_iter_link_info where{};
  where.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
  where.cgroup.cgroup_fd = static_cast<__u32>(above_zero.get());
  DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &where,
                      .link_info_len = sizeof where);
  link_.reset(bpf_program__attach_iter(program_->progs.sweep, &opts));
  if (!link_) return errno_failure("attach an iterator", errno);
  return {};
}

// The iterator is over one task, because the program is to run once: this thread.
void BpfSweep::attach_flush() {
  const bpf_program* flush =
      by_call_ ? program_->progs.sweep_flush : program_->progs.sweep_flush_own;
  if (!bpf_program__autoload(flush)) return;
  bpf_iter_link_info where{};
  where.task.tid = static_cast<__u32>(gettid());
  DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &where,
                      .link_info_len = sizeof where);
  flush_link_.reset(bpf_program__attach_iter(flush, &opts));
  if (flush_link_) flush_.reset(bpf_iter_create(bpf_link__fd(flush_link_.get())));
}

// Without one of them an update, or a change of the tree, would go unnoticed.
Result<> BpfSweep::attach_notes() {
  for (const bpf_program* each : {program_->progs.sweep_flushed, program_->progs.sweep_populated,
                                  program_->progs.sweep_made, program_->progs.sweep_removed}) {
    bpf_link* link = bpf_program__attach(each);
    if (!link) return errno_failure(std::string("attach ") + bpf_program__name(each), errno);
    note_links_.emplace_back(link);
  }
  return {};
}

Result<> BpfSweep::attach(const std::filesystem::path& root) {
  Fd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_failure("open " + root.string(), errno);
  if (by_call_) {
    struct stat status {};
    if (fstat(directory.get(), &status) != 0) return errno_failure("stat " + root.string(), errno);
    // The inode number of a cgroup directory is the cgroup's id (64-bit hosts, Linux 5.5).
    program_->bss->walk_top = status.st_ino;
    program_->bss->walk_found = 1;  // and nothing left to visit: is the root of the tree known?
    if (auto called = call(program_->progs.sweep_call); !called) return called;
    if (const auto noted = notes_updates_ ? attach_notes() : Result<>{}; !noted) {
      note_links_.clear();
      notes_updates_ = false;
      updated_refused_ = noted.error().what;
    }
  } else if (auto attached = attach_iterator(directory.get()); !attached) {
    return failure("attach the sweep to " + root.string() + ": " + attached.error().what,
                   attached.error().code);
  }
  attach_flush();

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

Result<> BpfSweep::run_iterator(const bpf_link* link) {
  const Fd iterator(bpf_iter_create(bpf_link__fd(link)));
  if (!iterator) return errno_failure("start an iterator", errno);
  std::array<char, 64> nothing;  // the program prints nothing: one read is all of it
  ssize_t got;
  do
    got = ::read(iterator.get(), nothing.data(), nothing.size());
  while (got < 0 && errno == EINTR && program_->bss->pass.next == 0);
  if (got < 0) return errno_failure("read an iterator", errno);
  return {};
}

// The read fails with EAGAIN: the iterator stays at its one task.
void BpfSweep::run_flush() {
  char nothing = 0;
  static_cast<void>(!::read(flush_.get(), &nothing, sizeof nothing));
}

Result<> BpfSweep::call(const bpf_program* program) {
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run);
  const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &run);
  if (error != 0) return errno_failure("run the sweep program", -error);
  if (!program_->bss->walk_top_found)
    return failure("the program does not find the root of the cgroup tree", ENODEV);
  ++calls_;
  return {};
}

// If the cgroup at which a call ended is removed before the next call, the pass begins again, with
// twice as many cgroups a call: with all of them in one call, there is no such place.
Result<> BpfSweep::walk_tree() {
  auto& state = *program_->bss;
  std::uint32_t limit = call_limit_;
  state.walk_found = 1;
  for (;;) {
    state.walk_left = limit;
    if (auto called = call(program_->progs.sweep_call); !called) return called;
    if (!state.walk_found) {
      limit = limit > UINT32_MAX / 2 ? UINT32_MAX : limit * 2;
      // The stamps of cgroups at a new position are written: the second attempt does not count
      // them.
      const std::uint32_t reassigned = state.pass.reassigned;
      begin_pass();
      state.pass.reassigned = reassigned;
      state.walk_found = 1;
    } else if (state.walk_more) {
      state.walk_found = 0;
    } else {
      return {};
    }
  }
}

bool BpfSweep::may_visit_updated_only() const {
  constexpr std::uint32_t kWord = 64;
  const bool is_flushed = program_->bss->pass.flushed & HR_CPU;
  return notes_updates_ && numbered_ && program_->bss->tree_changes == walked_tree_changes_ &&
         is_flushed && !compare_usage_ && idle_mask_ > 0 && idle_mask_ < kWord;
}

Result<> BpfSweep::visit_updated() {
  auto& state = *program_->bss;
  state.pass.next = last_.next;
  state.turn_bits = 0;
  for (std::uint32_t i = 0; i < 64; ++i)
    if ((i & idle_mask_) == state.pass.share) state.turn_bits |= std::uint64_t{1} << i;
  state.updated_from = 0;
  do {
    state.walk_left = call_limit_;
    if (auto called = call(program_->progs.sweep_updated); !called) return called;
  } while (state.walk_more);
  state.pass.idle_skipped += state.pass.next - state.pass.visited;
  return {};
}

// So many at a time: the rest is numbered after the next sweep.
void BpfSweep::number_cgroups() {
  constexpr std::uint32_t kAtOnce = 4096;  // memory is allocated for each
  auto& state = *program_->bss;
  state.walk_left = std::min(call_limit_, kAtOnce);
  state.updated_from = 0;
  numbered_ = call(program_->progs.sweep_number) && state.unnumbered == 0;
}

// The cgroups are numbered when the tree has been the same for a sweep, and not where something
// waits for the pass: their numbers are memory.
Result<> BpfSweep::make_pass() {
  if (!by_call_) return run_iterator(link_.get());
  if (may_visit_updated_only()) return visit_updated();
  const std::uint64_t changes = program_->bss->tree_changes;
  if (auto made = walk_tree(); !made) return made;
  const hr_sweep_pass& pass = program_->bss->pass;
  const bool is_as_before = changes == walked_tree_changes_ && pass.reassigned == 0;
  numbered_ = numbered_ && is_as_before;
  walked_tree_changes_ = pass.lost == 0 ? changes : UINT64_MAX;
  if (notes_updates_ && is_as_before && !numbered_ && !urgent_ && !compare_usage_) number_cgroups();
  return {};
}

bool BpfSweep::flush_memory() {
  if (!flush_) return false;
  hr_sweep_pass& pass = program_->bss->pass;
  pass.flushed = 0;
  program_->bss->root_wanted = 1;
  run_flush();
  program_->bss->root_wanted = 0;
  return pass.flushed & HR_MEMORY_STAT;
}

bool BpfSweep::flushes_memory() const {
  return flush_ && program_->rodata->config.kfuncs & (HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_MEMCG);
}

const hr_record* BpfSweep::flushed_root() const {
  const hr_record& root = program_->bss->flushed_root;
  return root.valid & HR_MEMORY_STAT ? &root : nullptr;
}

std::span<const std::uint32_t> BpfSweep::incomplete_io() const {
  const auto& incomplete = program_->bss->incomplete_io;
  return {incomplete,
          std::min<std::size_t>(program_->bss->incomplete_io_count, std::size(incomplete))};
}

void BpfSweep::begin_pass() {
  hr_sweep_pass& pass = program_->bss->pass;
  pass.next = pass.lost = pass.idle_skipped = pass.reassigned = pass.visited = 0;
  program_->bss->incomplete_io_count = 0;
  pass.number = last_.number + 1;
  pass.second = static_cast<hr_u32>(
      std::chrono::duration_cast<std::chrono::seconds>(now().time_since_epoch()).count());
  pass.forget = 0;
  for (hr_u32 second = pass.second;
       second != last_.second && pass.second - second <= HR_ACTIVE_SECONDS; --second)
    pass.forget |= 1u << (second & HR_ACTIVE_SECONDS);
  pass.mask = idle_mask_;
  pass.share = pass.number & idle_mask_;
  pass.compare_usage = compare_usage_;
}

// By a program where one can: an iterator's flushes at the top of its pass.
void BpfSweep::flush() {
  hr_sweep_pass& pass = program_->bss->pass;
  if (by_call_) pass.flushed = 0;
  if (by_call_ && flush_ && !urgent_) run_flush();
  // The first pass shows what an iterator flushes; until then memory.stat is flushed here too.
  if (memory_stat_ && !(pass.flushed & HR_MEMORY_STAT)) {
    std::array<char, 64> few;  // the file is made, and the stats flushed, whatever is asked of it
    (void)!pread(memory_stat_.get(), few.data(), few.size(), 0);
  }
  if (io_flush_ && !urgent_) io_flush_->flush();
}

Result<std::span<const hr_record>> BpfSweep::sweep() {
  flush();
  begin_pass();
  calls_ = 0;
  const auto made = make_pass();
  const hr_sweep_pass& pass = program_->bss->pass;
  same_ = made && pass.reassigned == 0 && pass.next == last_.next;
  last_ = pass;
  lost_ += last_.lost;
  if (!made)
    return failure("make a pass over the cgroups: " + made.error().what, made.error().code);
  if (io_flush_ && !urgent_ && !(same_ && io_flush_->up_to_date()))
    io_flush_->update_io_stats({records_, last_.next});
  return std::span<const hr_record>(records_, last_.next);
}

}  // namespace headroom::observe
