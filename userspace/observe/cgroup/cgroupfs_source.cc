// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroupfs_source.h"

#include "observe/cgroup/stat_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace headroom::observe {
namespace {

// memory.stat is about 2 KiB on 7.2; the rest are smaller.
constexpr std::size_t kBuffer = 16 * 1024;
// Missing files of a cgroup are looked for again once in this many looks.
constexpr std::uint64_t kRetryEvery = 64;

std::size_t descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return 1024;
  return limit.rlim_cur == RLIM_INFINITY ? 1u << 20 : limit.rlim_cur;
}

// nr_descendants of a cgroup.stat.
std::optional<std::uint64_t> descendants_in(int cgroup_stat) {
  std::array<char, 4096> buffer;
  const ssize_t got = pread(cgroup_stat, buffer.data(), buffer.size(), 0);
  if (got <= 0) return std::nullopt;
  for (FlatKeyed line({buffer.data(), static_cast<std::size_t>(got)}); line.next();)
    if (line.key() == "nr_descendants") return line.value();
  return std::nullopt;
}

struct CloseDir {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<std::unique_ptr<CgroupfsSource>> CgroupfsSource::open(const Options& options) {
  std::unique_ptr<CgroupfsSource> source(new CgroupfsSource);
  source->root_ = options.root;
  source->groups_ = options.groups;
  source->root_is_real_ = options.root_is_real;
  // Directories come first, one a cgroup and never given up; files share what is left of three
  // quarters. The last quarter is everyone else's.
  const std::size_t keep = options.descriptors ? options.descriptors : descriptor_limit() / 4 * 3;
  source->directories_left_ = keep;
  source->budget_.files = keep / 8 * 7;
  source->buffer_.resize(kBuffer);
  if (auto walked = source->walk(); !walked) return tl::make_unexpected(walked.error());
  return source;
}

bool CgroupfsSource::tree_changed() {
  if (stale_ || !tree_stat_) return true;
  const auto descendants = descendants_in(tree_stat_.get());
  return !descendants || descendants != descendants_;
}

Result<> CgroupfsSource::refresh() {
  ++refreshes_;
  if (!tree_changed()) return {};
  return walk();
}

Result<> CgroupfsSource::walk() {
  // Counted before the walk: a cgroup made during it is found now or makes the next count differ.
  tree_stat_.reset(::open((root_ / "cgroup.stat").c_str(), O_RDONLY | O_CLOEXEC));
  descendants_ = tree_stat_ ? descendants_in(tree_stat_.get()) : std::nullopt;
  auto root = CgroupFiles::open(AT_FDCWD, root_.c_str());
  if (!root) return tl::make_unexpected(root.error());
  root_id_ = root->id();

  std::vector<Entry> known = std::exchange(entries_, {});
  entries_.reserve(known.size() + 64);
  if (auto same = index_.find(root_id_); same != index_.end())
    entries_.push_back(std::move(known[same->second]));
  else
    entries_.push_back({std::move(*root), 0});
  // entries_ doubles as the queue: pre-order by level, each parent before its children.
  for (std::size_t parent = 0; parent < entries_.size(); ++parent)
    walk_below(parent, known);

  for (Entry& gone : known) {
    if (gone.files.directory() < 0) continue;  // moved to entries_
    budget_.files += gone.files.kept();
    ++directories_left_;
  }
  index_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    index_.emplace(entries_[i].files.id(), i);
  records_.reserve(entries_.size() + 64);
  stale_ = false;
  return {};
}

void CgroupfsSource::walk_below(std::size_t parent, std::vector<Entry>& known) {
  const int parent_fd = entries_[parent].files.directory();
  const std::uint64_t parent_id = entries_[parent].files.id();
  // The kept descriptor is O_PATH; reading the directory needs one of its own.
  Fd readable(openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, CloseDir> directory(readable ? fdopendir(readable.get()) : nullptr);
  if (!directory) {
    if (errno == EMFILE || errno == ENFILE) ++lost_;
    return;
  }
  readable.release();  // closedir() closes it
  while (const dirent* child = readdir(directory.get())) {
    if (child->d_type != DT_DIR && child->d_type != DT_UNKNOWN) continue;
    const std::string_view child_name = child->d_name;
    if (child_name == "." || child_name == "..") continue;
    if (auto same = index_.find(child->d_ino);
        same != index_.end() && known[same->second].files.directory() >= 0) {
      entries_.push_back(std::move(known[same->second]));
      continue;
    }
    if (directories_left_ == 0) {
      ++lost_;
      continue;
    }
    auto opened = CgroupFiles::open(parent_fd, child->d_name);
    if (!opened) {  // gone since readdir, a file of unknown type, or no descriptor left
      if (opened.error().code == EMFILE || opened.error().code == ENFILE) ++lost_;
      continue;
    }
    --directories_left_;
    entries_.push_back({std::move(*opened), parent_id});
  }
}

bool CgroupfsSource::read(Entry& entry, std::uint32_t groups, hr_record& record) {
  // A few of them at each look: ids are spread.
  if ((refreshes_ + entry.files.id()) % kRetryEvery == 0) entry.files.retry_missing();
  const bool is_root = root_is_real_ && entry.files.id() == root_id_;
  if (entry.files.read(groups, is_root, buffer_, budget_, record)) return true;
  stale_ = true;
  return false;
}

bool CgroupfsSource::fill(std::uint32_t groups, hr_record& record) {
  const auto found = index_.find(record.id);
  if (found == index_.end()) {
    invalidate(record, groups);
    return false;
  }
  return read(entries_[found->second], groups, record);
}

Result<std::span<const hr_record>> CgroupfsSource::sweep() {
  if (auto seen = refresh(); !seen) return tl::make_unexpected(seen.error());
  records_.clear();
  for (Entry& entry : entries_) {
    hr_record& record = records_.emplace_back(unknown_record(entry.files.id(), entry.parent_id));
    if (!read(entry, groups_ & ~not_read_, record)) records_.pop_back();
  }
  return std::span<const hr_record>(records_);
}

}  // namespace headroom::observe
