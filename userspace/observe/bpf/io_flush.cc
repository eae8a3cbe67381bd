// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/io_flush.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
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

void IoFlush::flush() {
  for (const Fd& io_stat : io_stats_) {
    std::array<char, 64> few;  // the whole is made, and flushed, whatever is asked of it
    (void)!pread(io_stat.get(), few.data(), few.size(), 0);
  }
}

void IoFlush::update_io_stats(std::span<const hr_record> records) {
  if (records.empty()) return;
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

}  // namespace headroom::observe
