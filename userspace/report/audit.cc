// SPDX-License-Identifier: Apache-2.0
#include "report/audit.h"

#include "base/fd.h"
#include "report/journal.h"
#include "report/minute_json.h"
#include "report/self_threads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace headroom::report {
namespace {

// Half a line would spoil the file for every reader: take it back.
Result<> take_back(const Fd& fd, const std::string& doing, off_t size) {
  if (::ftruncate(fd.get(), size) != 0) return errno_failure("truncate after " + doing, errno);
  return failure(doing + ": written in part", ENOSPC);
}

}  // namespace

Result<> append(const std::filesystem::path& file, const std::string& lines) {
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) return errno_failure("create " + file.parent_path().string(), made.value());
  const std::string doing = "append to " + file.string();
  const Fd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!fd) return errno_failure("open " + file.string(), errno);
  struct stat before {};
  if (::fstat(fd.get(), &before) != 0) return errno_failure("stat " + file.string(), errno);
  const ssize_t written = ::write(fd.get(), lines.data(), lines.size());
  if (written < 0) return errno_failure(doing, errno);
  if (static_cast<std::size_t>(written) < lines.size()) return take_back(fd, doing, before.st_size);
  return {};
}

AuditLog::AuditLog(AuditSetup setup) : setup_(std::move(setup)) {
  if (!setup_.file.empty()) writer_ = std::thread([this] { run(); });
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  if (writer_.joinable()) writer_.join();
}

bool AuditLog::submit(Eviction& eviction) {
  if (setup_.file.empty()) return true;
  {
    const std::lock_guard lock(mutex_);
    if (count_ == kInFlight) {
      ++tally_.lost;
      return false;
    }
    std::swap(handed_over_[(first_ + count_) % kInFlight], eviction);
    ++count_;
  }
  work_.notify_one();
  return true;
}

AuditLog::Tally AuditLog::tally() const {
  const std::lock_guard lock(mutex_);
  Tally tally = tally_;
  tally.waiting = count_ + kept_.size();
  return tally;
}

void AuditLog::run() {
  name_thread("audit");
  std::unique_lock lock(mutex_);
  for (bool more = true; more;) {
    more = await_work(lock);
    format_handed_over(lock);
    write_kept(lock);
  }
  tally_.lost += kept_.size();
}

// False: this is the last round.
bool AuditLog::await_work(std::unique_lock<std::mutex>& lock) {
  const auto news = [this] { return stop_ || count_ > 0; };
  if (kept_.empty())
    work_.wait(lock, news);
  else
    work_.wait_for(lock, setup_.retry_every, news);
  return !stop_;
}

// With its minute written beside it. Without one where that fails: the line matters more.
std::string AuditLog::formatted(Eviction& eviction) {
  std::string file;
  if (const auto minute = std::exchange(eviction.minute, nullptr)) {
    auto kept =
        keep_minute(setup_.file, *minute, *eviction.decision.pod, setup_.wall_time(minute->at));
    if (kept) {
      file = std::move(*kept);
    } else {
      log::error("{}: the last minute before an eviction is lost", kept.error().what);
      const std::lock_guard lock(mutex_);
      ++tally_.minutes_lost;
    }
  }
  return audit_line(eviction, setup_.wall_time(eviction.decision.decided_at), setup_.qos_of, file);
}

void AuditLog::format_handed_over(std::unique_lock<std::mutex>& lock) {
  Eviction eviction;
  while (count_ > 0) {
    std::swap(eviction, handed_over_[first_]);
    lock.unlock();
    std::string line;
    try {
      line = formatted(eviction);
    } catch (const std::exception& e) {
      log::error("format an audit record: {}", e.what());
    }
    lock.lock();
    // Swap back, so that the buffers return to the table; only now is its place free.
    std::swap(eviction, handed_over_[first_]);
    first_ = (first_ + 1) % kInFlight;
    --count_;
    keep(std::move(line));
  }
}

void AuditLog::keep(std::string line) {
  if (line.empty() || kept_.size() == kKept) ++tally_.lost;
  if (line.empty()) return;
  if (kept_.size() == kKept) kept_.pop_front();
  kept_.push_back(std::move(line));
}

void AuditLog::write_kept(std::unique_lock<std::mutex>& lock) {
  while (!kept_.empty()) {
    const std::string line = kept_.front();
    lock.unlock();
    const Result<> result = append(setup_.file, line);
    settle(result);
    lock.lock();
    if (!result) {
      ++tally_.failed_writes;
      return;
    }
    kept_.pop_front();
    ++tally_.written;
  }
}

// Says once that it fails and once that it works again.
void AuditLog::settle(const Result<>& result) {
  if (!result && !failing_)
    log::error("{}; keeping the last {} evictions in memory and trying again", result.error().what,
               kKept);
  if (result && failing_) log::info("audit log {} takes lines again", setup_.file.string());
  failing_ = !result;
}

}  // namespace headroom::report
