// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace headroom {
namespace {

namespace fs = std::filesystem;

// The rename survives a crash only when its directory is on disk.
Result<> sync_directory(const fs::path& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return errno_failure("sync " + directory.string(), errno);
  return {};
}

Result<> write_new(const std::string& file, std::string_view text, const AtomicWrite& options) {
  const auto reached = [&](WriteStep step) {
    if (options.at) options.at(step);
  };
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, options.mode));
  if (!fd) return errno_failure("create " + file, errno);
  if (::fchmod(fd.get(), options.mode) != 0) return errno_failure("chmod " + file, errno);
  reached(WriteStep::kCreated);
  const std::size_t half = options.at ? text.size() / 2 : text.size();
  int error = write_all(fd.get(), text.substr(0, half));
  reached(WriteStep::kHalfWritten);
  if (error == 0) error = write_all(fd.get(), text.substr(half));
  if (error != 0) return errno_failure("write " + file, error);
  reached(WriteStep::kWritten);
  if (options.durable && ::fsync(fd.get()) != 0) return errno_failure("sync " + file, errno);
  reached(WriteStep::kSynced);
  return {};
}

}  // namespace

Result<> write_atomically(const fs::path& path, std::string_view text, const AtomicWrite& options) {
  std::error_code ignored;
  if (options.make_directory)
    fs::create_directories(path.parent_path(), ignored);  // open() reports a failure
  const std::string file =
      (path.parent_path() / ("." + path.filename().string() + ".new")).string();
  auto written = write_new(file, text, options);
  if (written && ::rename(file.c_str(), path.c_str()) != 0)
    written = errno_failure("rename " + file, errno);
  if (!written) {
    ::unlink(file.c_str());
    return written;
  }
  if (options.at) options.at(WriteStep::kRenamed);
  return options.durable ? sync_directory(path.parent_path()) : Result<>();
}

}  // namespace headroom
