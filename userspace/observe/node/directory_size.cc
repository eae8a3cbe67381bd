// SPDX-License-Identifier: Apache-2.0
#include "observe/node/directory_size.h"

#include "base/file_io.h"
#include "base/mountinfo.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace headroom::observe {
namespace {

bool is_below(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

// What ext4 and XFS write.
bool counts_projects(const Mount& mount) {
  return mount_option(mount, "prjquota") || mount_option(mount, "pquota");
}

}  // namespace

Result<bool> has_project_quota(const std::filesystem::path& path,
                               const std::filesystem::path& mountinfo) {
  std::optional<Mount> deepest;
  for (Mount& mount : read_mounts(mountinfo)) {
    // Of equals the later: it is mounted over the earlier.
    if (!is_below(path, mount.point)) continue;
    if (deepest && mount.point.size() < deepest->point.size()) continue;
    deepest = std::move(mount);
  }
  if (!deepest) return failure("find the filesystem of " + path.string());
  return counts_projects(*deepest);
}

namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Listing = std::unique_ptr<DIR, CloseDir>;

// Each level holds a descriptor. A deeper tree is not measured rather than measured wrong.
constexpr std::size_t kMaxDepth = 512;
constexpr std::uint64_t kBatch = 512;
constexpr std::int64_t kBlock = 512;  // of st_blocks, whatever the filesystem's own

Result<Listing> list(Fd directory) {
  Listing listing(::fdopendir(directory.get()));
  if (!listing) return errno_failure("list a directory", errno);
  directory.release();  // closedir() closes it
  return listing;
}

class Walk {
 public:
  Walk(WalkRate rate, const std::stop_token& stop) : rate_(rate), stop_(stop) {}

  Result<FsUsage> measure(Fd top) {
    struct stat status {};
    if (::fstat(top.get(), &status) != 0) return errno_failure("stat a directory", errno);
    device_ = status.st_dev;
    count(status);
    if (auto entered = enter(std::move(top)); !entered) return tl::make_unexpected(entered.error());
    while (!levels_.empty())
      if (auto stepped = step(); !stepped) return tl::make_unexpected(stepped.error());
    return FsUsage{Bytes{blocks_ * kBlock}, inodes_};
  }

 private:
  Result<> enter(Fd directory) {
    if (levels_.size() == kMaxDepth) return failure("a tree deeper than 512 directories", ELOOP);
    auto listing = list(std::move(directory));
    if (!listing) return tl::make_unexpected(listing.error());
    levels_.push_back(std::move(*listing));
    return {};
  }

  // One entry of the deepest directory.
  Result<> step() {
    DIR* const here = levels_.back().get();
    errno = 0;
    const dirent* entry = ::readdir(here);
    if (!entry) {
      const int error = errno;
      levels_.pop_back();
      if (error != 0) return errno_failure("read a directory", error);
      return {};
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") return {};
    if (auto throttled = throttle(); !throttled) return throttled;
    struct stat status {};
    if (::fstatat(::dirfd(here), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? Result<>{} : errno_failure("stat " + std::string(name), errno);
    if (status.st_dev != device_) return {};
    const bool first_link =
        S_ISDIR(status.st_mode) || status.st_nlink < 2 || linked_.insert(status.st_ino).second;
    if (first_link) count(status);
    if (!S_ISDIR(status.st_mode)) return {};
    Fd child(
        ::openat(::dirfd(here), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!child)  // gone, or something else by now: files come and go while one walks
      return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                 ? Result<>{}
                 : errno_failure("open " + std::string(name), errno);
    return enter(std::move(child));
  }

  void count(const struct stat& status) {
    blocks_ += status.st_blocks;
    ++inodes_;
  }

  Result<> throttle() {
    if (++seen_ % kBatch != 0) return {};
    if (stop_.stop_requested()) return failure("stopped", ECANCELED);
    using namespace std::chrono;
    const auto due = began_ + nanoseconds(seen_ * 1'000'000'000 / rate_.entries_per_second);
    // In slices, so that a stop request is noticed.
    while (steady_clock::now() < due && !stop_.stop_requested())
      std::this_thread::sleep_for(
          std::min<nanoseconds>(milliseconds(50), due - steady_clock::now()));
    return {};
  }

  const WalkRate rate_;
  const std::stop_token& stop_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<Listing> levels_;
  std::unordered_set<ino_t> linked_;
  dev_t device_ = 0;
  std::int64_t blocks_ = 0;
  std::int64_t inodes_ = 0;
  std::uint64_t seen_ = 0;
};

// A tmpfs mounted for the purpose (emptyDir medium: Memory) knows its own size.
std::optional<FsUsage> whole_tmpfs(int top) {
  struct statfs space {};
  if (::fstatfs(top, &space) != 0 || space.f_type != TMPFS_MAGIC) return std::nullopt;
  struct stat here {};
  struct stat above {};
  if (::fstat(top, &here) != 0 || ::fstatat(top, "..", &above, 0) != 0 ||
      here.st_dev == above.st_dev)
    return std::nullopt;
  return FsUsage{Bytes{static_cast<std::int64_t>(space.f_blocks - space.f_bfree) * space.f_bsize},
                 static_cast<std::int64_t>(space.f_files - space.f_ffree)};
}

constexpr int kProjectQuota = 2;  // PRJQUOTA, which glibc's <sys/quota.h> does not know
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443  // Linux 5.14
#endif

// Nullopt: no project, or one that what is made in the directory does not inherit.
std::optional<std::uint32_t> project_of(int directory) {
  fsxattr attributes{};
  if (::ioctl(directory, FS_IOC_FSGETXATTR, &attributes) != 0) return std::nullopt;
  if (attributes.fsx_projid == 0 || !(attributes.fsx_xflags & FS_XFLAG_PROJINHERIT))
    return std::nullopt;
  return attributes.fsx_projid;
}

}  // namespace

Result<FsUsage> directory_size(const std::string& path, WalkRate rate,
                               const std::stop_token& stop) {
  Fd top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top && errno == ENOENT) return FsUsage{Bytes{0}, 0};
  if (!top && errno == ENOTDIR) {  // a hostPath may be a file
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return errno_failure("stat " + path, errno);
    return FsUsage{Bytes{status.st_blocks * kBlock}, 1};
  }
  if (!top) return errno_failure("open " + path, errno);
  if (auto tmpfs = whole_tmpfs(top.get())) return *tmpfs;
  if (auto quota = directory_quota(top.get())) return *quota;
  auto walked = Walk(rate, stop).measure(std::move(top));
  if (!walked) return failure(path + ": " + walked.error().what, walked.error().code);
  return walked;
}

Result<FsUsage> directory_quota(int directory) {
  const auto project = project_of(directory);
  if (!project) return failure("no project quota", ENODATA);
  // A project that began further up counts more than this tree.
  const Fd parent(::openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || project_of(parent.get()) == project)
    return failure("the project is not the directory's own", ENODATA);
  dqblk quota{};
  if (::syscall(SYS_quotactl_fd, directory, QCMD(Q_GETQUOTA, kProjectQuota), *project, &quota) != 0)
    return errno_failure("read the project quota", errno);
  if (!(quota.dqb_valid & QIF_SPACE) || !(quota.dqb_valid & QIF_INODES))
    return failure("the project's usage is not counted", ENODATA);
  return FsUsage{Bytes{static_cast<std::int64_t>(quota.dqb_curspace)},
                 static_cast<std::int64_t>(quota.dqb_curinodes)};
}

}  // namespace headroom::observe
