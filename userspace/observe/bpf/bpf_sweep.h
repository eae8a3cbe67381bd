// SPDX-License-Identifier: Apache-2.0
// BpfSweep: every cgroup in one pass of a BPF program, its records read through a mapping: a few
// system calls a pass, none per cgroup.
//
// Since Linux 6.10 the pass is made of calls of a program that holds the RCU read lock alone.
// Before it is an iterator's, which holds cgroup_mutex: it waits for those who create, remove or
// attach, and they wait for it.
#pragma once

#include "base/file_io.h"
#include "observe/bpf/bpf_loader.h"
#include "observe/bpf/kernel_facts.h"
#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// IoFlush: brings io statistics up to date before a sweep, where nothing else does.
//
// Up to 6.15 one flush of the root covers every controller. Since 6.16 each controller has its own,
// no function of BPF's reaches io's, and the root's io.stat shows the disks' counters without
// flushing; but reading io.stat of a cgroup flushes all below it. So the children of the root are
// read, a handful of system calls for the whole tree; of a tree below the root, its top.

class IoFlush {
 public:
  // The cgroup2 mount, or the tree that is swept. Kept open.
  explicit IoFlush(Fd root);

  // Reads io.stat of the top, or of each known child of the root.
  void flush();
  // Learns the root's children from a sweep; looks into the directory only when they changed.
  void update_io_stats(std::span<const hr_record> records);
  // The last look into the directory succeeded: nothing is to be learnt while the tree is the same.
  bool up_to_date() const { return top_only_ || up_to_date_; }

 private:
  void open_io_stats(std::uint64_t signature);

  Fd root_;
  bool top_only_;                // the tree is below the root
  std::vector<Fd> io_stats_;     // of the top, or of the children that have an io controller
  std::uint64_t signature_ = 0;  // of the children's ids
  bool up_to_date_ = false;
};

}  // namespace headroom::observe

struct bpf_program;
struct sweep_bpf;

namespace headroom::observe {

class BpfSweep final : public CgroupSource {
 public:
  struct Options {
    std::filesystem::path root = "/sys/fs/cgroup";  // the cgroup2 mount, or a tree below it
    std::uint32_t groups = kAllGroups;
    std::uint32_t capacity = 16'384;  // records; 512 bytes each, mapped at open
    bool by_call = true;              // false: as on a kernel that cannot (before 6.10)
    // Cgroups that one call visits, at most: it keeps its CPU from other tasks, 0.45 us for each.
    // The next call walks to where this one ended, past every cgroup in front.
    std::uint32_t call_limit = 16'384;
    bool updated_only = true;        // false: as on a kernel that does not say which were updated
    bool index_table = true;         // false: as on a kernel that hides them (no KALLSYMS_ALL)
    std::uint32_t io_devices = 256;  // block devices read for one cgroup, at most so many
    std::uint32_t last_pass = 0;     // of the source that this one replaces: passes go on from it
    LogLine log = {};                // libbpf's own words while loading
  };

  // Fails where the kernel has no BTF, no cgroup iterator (before 6.1) or refuses the program; the
  // error carries libbpf's last warning.
  static Result<std::unique_ptr<BpfSweep>> open(const Options& options);
  ~BpfSweep() override;

  Result<std::span<const hr_record>> sweep() override;
  std::uint32_t groups() const override { return groups_; }
  std::string_view name() const override { return "bpf"; }
  std::uint64_t lost() const override { return lost_; }

  ChangeStamps change_stamps() const override {
    return {{change_stamps_, last_.next}, last_.number};
  }
  bool same_cgroups() const override { return same_; }

  // From the next sweep on a cgroup at rest is read whole in one of so many sweeps only, a power of
  // two; in the others its record stays as it is. 1, as at open: every cgroup whole in every sweep.
  // Where the kernel says which cgroups were updated, and none was made or removed, a sweep without
  // compare_usage looks at no other one, if `sweeps` is at most 64. Then the pressure of a cgroup
  // whose tasks wait for a CPU and get none at all is as old as that.
  void idle_read_period(std::uint32_t sweeps) { idle_mask_ = sweeps - 1; }
  // A cgroup sleeps if it used no CPU time and its waits are unchanged; with `compare_usage`, only
  // if its usage and working set are unchanged too. On after open.
  void set_compare_usage(bool compare_usage) override { compare_usage_ = compare_usage; }
  void set_urgent(bool urgent) override { urgent_ = urgent; }
  bool flush_memory() override;
  bool flushes_memory() const override;
  const hr_record* flushed_root() const override;
  // How many records the last sweep left as they were; and how many cgroups it looked at, which are
  // all of them unless it visited the updated ones alone.
  std::uint32_t idle_skipped() const { return last_.idle_skipped; }
  std::uint32_t visited() const { return last_.visited; }

  // A pass is made of calls, and takes no cgroup_mutex.
  bool by_call() const { return by_call_; }
  // Whether the kernel says which cgroups were updated (idle_read_period()); why not, where it
  // could but its programs were refused.
  bool knows_updated() const { return notes_updates_; }
  const std::string& updated_refused() const { return updated_refused_; }
  // Calls of the last sweep.
  std::uint32_t calls() const { return calls_; }

  // The last sweep's records, for a caller that fills in what BPF does not know.
  std::span<hr_record> records() { return {records_, last_.next}; }
  // How many cgroups the last sweep had no room for.
  std::uint32_t lost_in_last_sweep() const { return last_.lost; }
  std::uint32_t capacity() const { return capacity_; }
  // Which records of the last sweep are without io because their cgroup has used more devices: the
  // first 64 of them.
  std::span<const std::uint32_t> incomplete_io() const;
  std::uint32_t partial_groups() const override {
    return incomplete_io().empty() ? 0 : std::uint32_t{HR_IO};
  }
  // Where the items of memory.stat come from, but for the LRU lists.
  struct Indices {
    StatIndices state = StatIndices::kUnknown;
    StatIndices events = StatIndices::kUnknown;
  };
  Indices stat_indices() const { return indices_; }
  // What the last pass flushed by a program; the rest is as fresh as the kernel's last flush, but
  // for memory.stat, which sweep() flushes by reading the root's file where no program does.
  std::uint32_t flushed() const { return last_.flushed; }

 private:
  BpfSweep() = default;
  Result<> load(const Options& options);
  Result<> load(const Options& options, const KernelFacts& facts);
  Result<> load_best(const Options& options, const KernelFacts& facts);
  Result<> attach(const std::filesystem::path& root);
  Result<> attach_iterator(int root);
  void attach_flush();
  Result<> attach_notes();
  void begin_pass();
  void flush();
  Result<> run_iterator(const bpf_link* link);
  void run_flush();
  Result<> call(const bpf_program* program);
  Result<> make_pass();
  Result<> walk_tree();
  bool may_visit_updated_only() const;
  Result<> visit_updated();
  void number_cgroups();
  Result<> map_records();

  sweep_bpf* program_ = nullptr;
  bool by_call_ = false;
  std::uint32_t call_limit_ = 0;
  std::uint32_t calls_ = 0;
  std::unique_ptr<bpf_link, DestroyLink> link_;  // of the pass; null: it is made of calls
  std::unique_ptr<bpf_link, DestroyLink> flush_link_;
  Fd flush_;                    // each read of it flushes; none: no program can
  bool flush_refused_ = false;  // before 6.10: the program that flushes without a pass
  bool notes_updates_ = false;
  std::string updated_refused_;                     // empty: they were not, or not tried
  Links note_links_;                                // of what notes the updated cgroups
  bool numbered_ = false;                           // each of them is noted
  std::uint64_t walked_tree_changes_ = UINT64_MAX;  // as of the last walk through the whole tree
  hr_record* records_ = nullptr;
  hr_change_stamp* change_stamps_ = nullptr;
  Fd memory_stat_;  // of the root: reading it is what flushes memory on 6.16 to 6.19
  std::optional<IoFlush> io_flush_;  // since 6.16
  std::uint32_t groups_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint64_t lost_ = 0;
  std::uint32_t idle_mask_ = 0;  // the bits of a running number that select whose turn it is
  bool compare_usage_ = true;
  bool urgent_ = false;
  bool same_ = false;
  hr_sweep_pass last_{};
  Indices indices_;
};

}  // namespace headroom::observe
