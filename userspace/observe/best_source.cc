// SPDX-License-Identifier: Apache-2.0
#include "observe/best_source.h"

#include "observe/parity.h"

#include <fcntl.h>

#include <algorithm>

namespace headroom::observe {
namespace {

// What the root has files for and the sweep leaves alone: the machine's own CPU time, pressure and
// I/O are not in its cgroup (kcpustat, psi_system, the disks' own counters).
constexpr std::uint32_t kRootGroups = HR_CPU | HR_THROTTLE | HR_PSI | HR_IO;
// A disagreement counts when it shows this often in a row: a busy cgroup may outrun one look.
constexpr int kLooks = 3;

// The groups that disagree at every look, each with its first disagreement.
struct Verdict {
  std::uint32_t wrong = 0;
  bool populated_wrong = false;  // belongs to no group; nothing of such a source can be trusted
  std::vector<Disagreement> because;
};

Result<Verdict> judge(CgroupSource& source, const ParityOptions& options) {
  Verdict verdict{.wrong = kAllGroups, .populated_wrong = true, .because = {}};
  for (int look = 0; look < kLooks && (verdict.wrong || verdict.populated_wrong); ++look) {
    auto parity = check_parity(source, options);
    if (!parity) return tl::make_unexpected(parity.error());
    verdict.wrong &= parity->disagreeing_groups();
    verdict.populated_wrong &=
        std::any_of(parity->disagreements.begin(), parity->disagreements.end(),
                    [](const Disagreement& d) { return d.group == 0; });
    verdict.because = std::move(parity->disagreements);
  }
  return verdict;
}

}  // namespace

Result<std::unique_ptr<BestSource>> BestSource::open(const Options& options) {
  std::unique_ptr<BestSource> best(new BestSource(options));
  best->buffer_.resize(16 * 1024);
  if (!options.bpf) {
    best->reasons_.push_back("bpf: turned off");
    if (auto files = best->use_files(options.groups); !files)
      return tl::make_unexpected(files.error());
    return best;
  }

  auto bpf = BpfSweep::open({.root = options.root,
                             .groups = options.groups,
                             .capacity = options.capacity,
                             .log = options.log});
  if (!bpf) {
    if (auto files = best->leave_bpf(bpf.error()); !files)
      return tl::make_unexpected(files.error());
    return best;
  }
  best->bpf_ = std::move(*bpf);
  if (auto root = CgroupFiles::open(AT_FDCWD, options.root.c_str()); root)
    best->root_files_ = std::move(*root);
  if (options.force_files) {
    best->reasons_.push_back(group_list(options.force_files) + ": files, as told");
    if (auto files = best->use_files(options.force_files); !files)
      return tl::make_unexpected(files.error());
  }
  best->recheck();
  if (best->bpf_ && (options.groups & ~best->from_files_ & HR_MEMORY_STAT))
    best->reasons_.push_back(
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
  from_files_ = groups;
  if (bpf_) rest_as_told();
  return {};
}

// Who sleeps is told by CPU time: where BPF's is wrong, nobody is passed over.
void BestSource::rest_as_told() {
  bpf_->rest(from_files_ & HR_CPU ? 1 : options_.rest);
}

Result<> BestSource::leave_bpf(const Error& why) {
  reasons_.push_back("bpf: " + why.what);
  if (bpf_) lost_before_ += bpf_->lost();
  bpf_.reset();
  return use_files(options_.groups);
}

bool BestSource::recheck() {
  if (!bpf_) return false;
  bpf_->rest(1);
  auto verdict = judge(*bpf_, {.root = options_.root, .cgroups = options_.self_check});
  rest_as_told();
  if (!verdict) return leave_bpf(verdict.error()).has_value();
  if (verdict->populated_wrong)
    return leave_bpf(Error{"populated disagrees with cgroup.events", 0}).has_value();
  const std::uint32_t dropped = verdict->wrong & ~from_files_ & options_.groups;
  if (dropped == 0) return false;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    if (!(dropped & (1u << i))) continue;
    for (const Disagreement& disagreement : verdict->because) {
      if (disagreement.group != (1u << i)) continue;
      reasons_.push_back(std::string(kGroupNames[i]) +
                         ": files, for BPF disagrees: " + to_string(disagreement));
      break;
    }
  }
  if (auto files = use_files(from_files_ | dropped); !files) {
    reasons_.push_back("files: " + files.error().what);
    return false;
  }
  return true;
}

// What a file serves is written at every sweep.
CgroupSource::Marks BestSource::marks() const {
  return bpf_ && from_files_ == 0 ? bpf_->marks() : Marks{};
}

void BestSource::look_closely(bool closely) {
  if (bpf_) bpf_->look_closely(closely);
}

std::string_view BestSource::name() const {
  if (!bpf_) return "files";
  return from_files_ ? "hybrid" : "bpf";
}

std::uint64_t BestSource::lost() const {
  return lost_before_ + (bpf_ ? bpf_->lost() : 0) + (files_ ? files_->lost() : 0);
}

std::array<std::string_view, HR_GROUPS> BestSource::provenance() const {
  std::array<std::string_view, HR_GROUPS> from;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    const std::uint32_t group = 1u << i;
    from[i] = !(options_.groups & group)       ? "none"
              : bpf_ && !(from_files_ & group) ? "bpf"
                                               : "files";
  }
  return from;
}

void BestSource::fill_root(hr_record& root) {
  const std::uint32_t groups = kRootGroups & options_.groups & ~from_files_;
  if (!root_files_ || groups == 0) return;
  root_files_->read(groups, true, buffer_, root_budget_, root);
}

Result<std::span<const hr_record>> BestSource::sweep() {
  same_ = false;
  if (!bpf_) return files_->sweep();
  auto swept = bpf_->sweep();
  if (!swept) {
    // Not expected once loaded; the files will do from now on, and it is said why.
    if (auto files = leave_bpf(swept.error()); !files) return tl::make_unexpected(files.error());
    return files_->sweep();
  }
  const std::uint32_t pass = bpf_->marks().pass;
  same_ = bpf_->same_cgroups() && pass == last_pass_ + 1;
  last_pass_ = pass;
  const std::span<hr_record> records = bpf_->records();
  if (!records.empty() && records.front().parent_id == 0) fill_root(records.front());
  if (from_files_ == 0) return swept;
  if (auto seen = files_->refresh(); !seen) return tl::make_unexpected(seen.error());
  for (hr_record& record : records)
    files_->fill(from_files_, record);
  return swept;
}

}  // namespace headroom::observe
