// SPDX-License-Identifier: Apache-2.0
#include "act/durable_file.h"

#include "base/fd.h"
#include "base/write_all.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

// The rename itself is only sure to outlast a crash when its directory is on disk.
Result<> sync_directory(const fs::path& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return errno_failure("sync " + directory.string(), errno);
  return {};
}

Result<> write_and_sync(const fs::path& temporary, std::string_view text, mode_t mode,
                        const AtStep& at) {
  const auto reached = [&](WriteStep step) {
    if (at) at(step);
  };
  const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return errno_failure("create " + temporary.string(), errno);
  if (::fchmod(fd.get(), mode) != 0) return errno_failure("chmod " + temporary.string(), errno);
  reached(WriteStep::kCreated);
  const std::size_t half = at ? text.size() / 2 : text.size();
  int error = write_all(fd.get(), text.substr(0, half));
  reached(WriteStep::kHalfWritten);
  if (error == 0) error = write_all(fd.get(), text.substr(half));
  if (error != 0) return errno_failure("write " + temporary.string(), error);
  reached(WriteStep::kWritten);
  if (::fsync(fd.get()) != 0) return errno_failure("sync " + temporary.string(), errno);
  reached(WriteStep::kSynced);
  return {};
}

}  // namespace

Result<> write_durably(const fs::path& path, std::string_view text, mode_t mode, const AtStep& at) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);  // else creating the file says why
  const fs::path temporary = path.string() + ".new";
  if (auto filled = write_and_sync(temporary, text, mode, at); !filled) {
    ::unlink(temporary.c_str());  // a full disk has better uses for it
    return filled;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return errno_failure("rename " + temporary.string(), errno);
  if (at) at(WriteStep::kRenamed);
  return sync_directory(path.parent_path());
}

}  // namespace headroom::act
