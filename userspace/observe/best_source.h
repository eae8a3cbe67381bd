// SPDX-License-Identifier: Apache-2.0
// BestSource: each group of fields from the best place that is proven on this machine: BPF where it
// agrees with the files, the files where it does not, files alone where BPF cannot load.
#pragma once

#include "observe/bpf/bpf_sweep.h"
#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_source.h"
#include "observe/cgroup/cgroupfs_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

class BestSource final : public CgroupSource {
 public:
  struct Options {
    std::filesystem::path root = "/sys/fs/cgroup";
    std::uint32_t groups = kAllGroups;
    std::uint32_t capacity = 4096;        // records of the BPF source, or twice the cgroups at open
    std::uint32_t io_devices = 256;       // as BpfSweep::Options
    std::size_t self_check = 16;          // cgroups compared with their files
    bool bpf = true;                      // false: files alone
    std::uint32_t idle_read_period = 16;  // as BpfSweep::idle_read_period()
    std::uint32_t force_files = 0;        // groups taken from files whatever the check says
    LogLine log = {};
  };

  // Fails only where not even the files can be read.
  static Result<std::unique_ptr<BestSource>> open(const Options& options);

  Result<std::span<const hr_record>> sweep() override;
  std::uint32_t groups() const override { return options_.groups; }
  ChangeStamps change_stamps() const override;
  bool same_cgroups() const override { return same_; }
  void set_compare_usage(bool compare_usage) override;
  void set_urgent(bool urgent) override;
  bool flush_memory() override { return bpf_ && bpf_->flush_memory(); }
  bool flushes_memory() const override { return bpf_ && bpf_->flushes_memory(); }
  const hr_record* flushed_root() const override { return bpf_ ? bpf_->flushed_root() : nullptr; }
  std::string_view name() const override;  // "bpf", "hybrid" or "files"
  std::uint64_t lost() const override;

  // Compares again, as at open; a group once dropped to files stays there. True if one was
  // dropped now.
  bool recheck();

  // Per group: "bpf", "files", or "none" where it was not asked for.
  std::array<std::string_view, HR_GROUPS> group_sources() const;
  // Why a group, or everything, is not served by BPF, and where the memory.stat indices are from.
  const std::vector<std::string>& source_notes() const { return source_notes_; }
  // Records that the BPF source has room for now: it grows with the tree.
  std::uint32_t capacity() const { return bpf_ ? bpf_->capacity() : 0; }
  // Null when files serve everything.
  const BpfSweep* bpf() const { return bpf_.get(); }

 private:
  explicit BestSource(const Options& options) : options_(options) {}
  Result<> use_files(std::uint32_t groups);
  Result<> fall_back_to_files(const Error& why);
  Result<> open_bpf(std::uint32_t capacity, std::uint32_t last_pass);
  Result<> grow();
  Result<std::span<const hr_record>> sweep_bpf();
  void apply_idle_read_period();
  std::uint32_t groups_now(std::uint32_t groups) const;
  void fill_root(hr_record& root);
  void note_incomplete_io();
  void fill_incomplete_io(std::span<hr_record> records);

  Options options_;
  std::unique_ptr<BpfSweep> bpf_;
  std::unique_ptr<CgroupfsSource> files_;     // of from_files_; null if that is nothing
  std::uint32_t from_files_ = 0;              // groups
  std::unique_ptr<CgroupfsSource> io_files_;  // of cgroups with more devices than BPF reads
  std::vector<std::uint32_t> without_io_;     // such records, since io was last read from files
  std::optional<CgroupFiles> root_files_;     // the root's CPU time and pressure
  DescriptorBudget root_budget_{CgroupFiles::kFiles};
  std::vector<char> buffer_;
  std::vector<std::string> source_notes_;
  std::uint64_t lost_before_ = 0;  // by sources no longer in use
  std::uint32_t last_pass_ = 0;    // BPF's, of our last sweep; recheck() makes some of its own
  bool same_ = false;
  bool compare_usage_ = true;  // a decision rests on the next sweep
  bool urgent_ = false;
};

}  // namespace headroom::observe
