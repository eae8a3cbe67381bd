// SPDX-License-Identifier: Apache-2.0
#include "observe/best_source.h"

#include "observe/self_check.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace headroom::observe {
namespace {

// What the root has files for and the sweep leaves alone: the machine's own CPU time, pressure and
// I/O are not in its cgroup (kcpustat, psi_system, the disks' own counters).
constexpr std::uint32_t kRootGroups = HR_CPU | HR_THROTTLE | HR_PSI | HR_IO;
// A disagreement counts when it shows this often in a row: a busy cgroup may outrun one look.
constexpr int kCheckAttempts = 3;

// The groups that disagree at every look, each with its first disagreement.
struct CheckResult {
  std::uint32_t wrong = 0;
  bool populated_wrong = false;  // belongs to no group; nothing of such a source can be trusted
  std::vector<Disagreement> details;
};

Result<CheckResult> compare_with_files(CgroupSource& source, const SelfCheckOptions& options) {
  CheckResult check{.wrong = kAllGroups, .populated_wrong = true, .details = {}};
  for (int attempt = 0; attempt < kCheckAttempts && (check.wrong || check.populated_wrong);
       ++attempt) {
    auto self_check_result = run_self_check(source, options);
    if (!self_check_result) return tl::make_unexpected(self_check_result.error());
    check.wrong &= self_check_result->disagreeing_groups();
    check.populated_wrong &= std::any_of(self_check_result->disagreements.begin(),
                                         self_check_result->disagreements.end(),
                                         [](const Disagreement& d) { return d.group == 0; });
    check.details = std::move(self_check_result->disagreements);
  }
  return check;
}

// Cgroups below this one, and itself; 1 if the kernel does not tell.
std::uint32_t cgroups_below(const std::filesystem::path& root) {
  std::ifstream file(root / "cgroup.stat");
  std::string key;
  for (std::uint32_t count = 0; file >> key >> count;)
    if (key == "nr_descendants") return count + 1;
  return 1;
}

std::string passes_of(const BpfSweep& bpf) {
  if (!bpf.by_call()) return "passes under cgroup_mutex";
  const std::string passes = "passes without cgroup_mutex";
  if (bpf.knows_updated()) return passes + ", between decisions of updated cgroups alone";
  const std::string& refused = bpf.updated_refused();
  return refused.empty() ? passes : passes + ", of all cgroups each time: " + refused;
}

}  // namespace

Result<> BestSource::open_bpf(std::uint32_t capacity, std::uint32_t last_pass) {
  auto bpf = BpfSweep::open({.root = options_.root,
                             .groups = options_.groups,
                             .capacity = capacity,
                             .io_devices = options_.io_devices,
                             .last_pass = last_pass,
                             .log = options_.log});
  if (!bpf) return tl::make_unexpected(bpf.error());
  bpf_ = std::move(*bpf);
  bpf_->set_compare_usage(compare_usage_);
  bpf_->set_urgent(urgent_);
  return {};
}

Result<std::unique_ptr<BestSource>> BestSource::open(const Options& options) {
  std::unique_ptr<BestSource> best(new BestSource(options));
  best->buffer_.resize(16 * 1024);
  if (!options.bpf) {
    best->source_notes_.push_back("bpf: turned off");
    if (auto files = best->use_files(options.groups); !files)
      return tl::make_unexpected(files.error());
    return best;
  }

  const auto bpf = best->open_bpf(std::max(options.capacity, 2 * cgroups_below(options.root)), 0);
  if (!bpf) {
    if (auto files = best->fall_back_to_files(bpf.error()); !files)
      return tl::make_unexpected(files.error());
    return best;
  }
  if (auto root = CgroupFiles::open(AT_FDCWD, options.root.c_str()); root)
    best->root_files_ = std::move(*root);
  if (options.force_files) {
    best->source_notes_.push_back(group_list(options.force_files) + ": files, as configured");
    if (auto files = best->use_files(options.force_files); !files)
      return tl::make_unexpected(files.error());
  }
  best->recheck();
  if (best->bpf_) best->source_notes_.push_back(passes_of(*best->bpf_));
  if (best->bpf_ && (options.groups & ~best->from_files_ & HR_MEMORY_STAT))
    best->source_notes_.push_back(
        "memory.stat: levels by " + std::string(observe::name(best->bpf_->stat_indices().state)) +
        ", events by " + std::string(observe::name(best->bpf_->stat_indices().events)));
  if (!best->bpf_ && !best->files_)
    return failure("no source can read the cgroups below " + options.root.string());
  return best;
}

// Serves these groups from files, beside BPF or instead of it.
Result<> BestSource::use_files(std::uint32_t groups) {
  auto files = CgroupfsSource::open({.root = options_.root, .groups = groups});
  if (!files) return tl::make_unexpected(files.error());
  if (files_) lost_before_ += files_->lost();
  files_ = std::move(*files);
  files_->set_compare_usage(compare_usage_);
  from_files_ = groups;
  if (bpf_) apply_idle_read_period();
  return {};
}

// Sleepers are recognised by their CPU time: if BPF's is wrong, every cgroup is read.
void BestSource::apply_idle_read_period() {
  bpf_->idle_read_period(from_files_ & HR_CPU ? 1 : options_.idle_read_period);
}

Result<> BestSource::fall_back_to_files(const Error& why) {
  source_notes_.push_back("bpf: " + why.what);
  if (bpf_) lost_before_ += bpf_->lost();
  bpf_.reset();
  return use_files(options_.groups);
}

bool BestSource::recheck() {
  if (!bpf_) return false;
  bpf_->idle_read_period(1);
  bpf_->set_urgent(false);  // a counter that is not flushed disagrees
  auto check = compare_with_files(*bpf_, {.root = options_.root, .cgroups = options_.self_check});
  bpf_->set_urgent(urgent_);
  apply_idle_read_period();
  note_incomplete_io();
  if (!check) return fall_back_to_files(check.error()).has_value();
  if (check->populated_wrong)
    return fall_back_to_files(Error{"populated disagrees with cgroup.events", 0}).has_value();
  const std::uint32_t dropped = check->wrong & ~from_files_ & options_.groups;
  if (dropped == 0) return false;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    if (!(dropped & (1u << i))) continue;
    for (const Disagreement& disagreement : check->details) {
      if (disagreement.group != (1u << i)) continue;
      source_notes_.push_back(std::string(kGroupNames[i]) +
                              ": files, for BPF disagrees: " + to_string(disagreement));
      break;
    }
  }
  if (auto files = use_files(from_files_ | dropped); !files) {
    source_notes_.push_back("files: " + files.error().what);
    return false;
  }
  return true;
}

// What a file serves is written at every sweep.
CgroupSource::ChangeStamps BestSource::change_stamps() const {
  return bpf_ && from_files_ == 0 ? bpf_->change_stamps() : ChangeStamps{};
}

// Room for twice the cgroups of the last pass. The program is loaded anew, because its maps cannot
// grow.
Result<> BestSource::grow() {
  const auto cgroups =
      static_cast<std::uint32_t>(bpf_->records().size()) + bpf_->lost_in_last_sweep();
  if (auto grown = open_bpf(2 * cgroups, bpf_->change_stamps().pass); !grown) return grown;
  apply_idle_read_period();
  return {};
}

// A pass that had no room for some cgroups is never shown: what is absent would pass for gone, and
// pods would drop out of the ranking. Between decisions room is made before it is needed.
Result<std::span<const hr_record>> BestSource::sweep_bpf() {
  if (!compare_usage_ && bpf_->records().size() > bpf_->capacity() / 4 * 3)
    if (auto grown = grow(); !grown) return tl::make_unexpected(grown.error());
  auto swept = bpf_->sweep();
  while (swept && bpf_->lost_in_last_sweep() > 0) {
    if (auto grown = grow(); !grown) return tl::make_unexpected(grown.error());
    swept = bpf_->sweep();
  }
  return swept;
}

void BestSource::set_compare_usage(bool compare_usage) {
  compare_usage_ = compare_usage;
  if (bpf_) bpf_->set_compare_usage(compare_usage);
  if (files_) files_->set_compare_usage(compare_usage);
}

void BestSource::set_urgent(bool urgent) {
  urgent_ = urgent;
  if (bpf_) bpf_->set_urgent(urgent);
}

std::string_view BestSource::name() const {
  if (!bpf_) return "files";
  return from_files_ ? "hybrid" : "bpf";
}

std::uint64_t BestSource::lost() const {
  return lost_before_ + (bpf_ ? bpf_->lost() : 0) + (files_ ? files_->lost() : 0);
}

std::array<std::string_view, HR_GROUPS> BestSource::group_sources() const {
  std::array<std::string_view, HR_GROUPS> from;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    const std::uint32_t group = 1u << i;
    from[i] = !(options_.groups & group)       ? "none"
              : bpf_ && !(from_files_ & group) ? "bpf"
                                               : "files";
  }
  return from;
}

// No eviction is decided by io: a pass that a decision rests on reads no file for it.
std::uint32_t BestSource::groups_now(std::uint32_t groups) const {
  return compare_usage_ ? groups & ~std::uint32_t{HR_IO} : groups;
}

void BestSource::fill_root(hr_record& root) {
  const std::uint32_t groups = groups_now(kRootGroups & options_.groups & ~from_files_);
  if (!root_files_ || groups == 0) return;
  root_files_->read(groups, true, buffer_, root_budget_, root);
}

// A cgroup at rest is named by the pass that read it alone, which may be a decision's or a check's.
void BestSource::note_incomplete_io() {
  if (!bpf_->same_cgroups()) without_io_.clear();
  for (const std::uint32_t index : bpf_->incomplete_io())
    if (std::find(without_io_.begin(), without_io_.end(), index) == without_io_.end())
      without_io_.push_back(index);
}

void BestSource::fill_incomplete_io(std::span<hr_record> records) {
  note_incomplete_io();
  if (groups_now(HR_IO & ~from_files_) == 0 || without_io_.empty()) return;
  if (!io_files_) {
    auto files = CgroupfsSource::open({.root = options_.root, .groups = HR_IO});
    if (!files) return;
    io_files_ = std::move(*files);
  } else if (!io_files_->refresh()) {
    return;
  }
  for (const std::uint32_t index : without_io_)
    if (index < records.size()) io_files_->fill(HR_IO, records[index]);
  without_io_.clear();
}

Result<std::span<const hr_record>> BestSource::sweep() {
  same_ = false;
  if (!bpf_) return files_->sweep();
  auto swept = sweep_bpf();
  if (!swept) {
    // Not expected once loaded: from now on the files are read, and the reason is logged.
    if (auto files = fall_back_to_files(swept.error()); !files)
      return tl::make_unexpected(files.error());
    return files_->sweep();
  }
  const std::uint32_t pass = bpf_->change_stamps().pass;
  same_ = bpf_->same_cgroups() && pass == last_pass_ + 1;
  last_pass_ = pass;
  const std::span<hr_record> records = bpf_->records();
  if (!records.empty() && records.front().parent_id == 0) fill_root(records.front());
  fill_incomplete_io(records);
  const std::uint32_t now = groups_now(from_files_);
  if (now != from_files_)
    for (hr_record& record : records)
      invalidate(record, HR_IO);
  if (now == 0) return swept;
  if (auto seen = files_->refresh(); !seen) return tl::make_unexpected(seen.error());
  for (hr_record& record : records)
    files_->fill(now, record);
  return swept;
}

}  // namespace headroom::observe
