// SPDX-License-Identifier: Apache-2.0
#include "daemon/status/status_file.h"

#include "base/atomic_file.h"
#include "base/log/journal.h"

#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {

NodeStatusWriter::NodeStatusWriter(std::filesystem::path path, std::chrono::milliseconds min_period)
    : path_(std::move(path)), min_period_(min_period), thread_([this] { run(); }) {}

NodeStatusWriter::~NodeStatusWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void NodeStatusWriter::submit(report::NodeStatusRef status) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(status);
  }
  changed_.notify_one();
}

void NodeStatusWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return next_ || stop_; });
    if (!next_) return;
    const report::NodeStatusRef status = std::exchange(next_, nullptr);
    lock.unlock();
    write(*status);
    lock.lock();
    changed_.wait_for(lock, min_period_, [this] { return stop_; });
  }
}

void NodeStatusWriter::write(const report::NodeStatus& status) {
  Result<> result;
  try {
    constexpr mode_t kReadable = 0644;
    // A name that is no UTF-8 is shown damaged rather than not at all.
    const std::string text =
        node_json(status).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    result = write_atomically(path_, text + "\n", {.mode = kReadable});
  } catch (const std::exception& e) {
    result = failure("write " + path_.string() + ": " + e.what());
  }
  ++(result ? written_ : failed_);
  if (!result && !failure_logged_)
    log::error("{}: the node's status file is out of date", result.error().what);
  failure_logged_ = !result;
}

}  // namespace headroom::daemon
