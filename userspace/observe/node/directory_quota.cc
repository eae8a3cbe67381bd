// SPDX-License-Identifier: Apache-2.0
// A directory's usage from its project quota: the filesystem keeps the sum, so no tree is walked.
#include "base/fd.h"
#include "observe/node/directory_size.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

namespace headroom::observe {
namespace {

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
