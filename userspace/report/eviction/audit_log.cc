// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/audit_log.h"

#include "base/file_io.h"
#include "base/json_text.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "report/eviction/flight_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

// A partial line would break every reader of the file, so it is removed.
Result<> truncate_partial_line(const Fd& fd, const std::string& action, off_t size) {
  if (::ftruncate(fd.get(), size) != 0) return errno_failure("truncate after " + action, errno);
  return failure(action + ": written in part", ENOSPC);
}

}  // namespace

Result<> append_lines(const std::filesystem::path& file, const std::string& lines) {
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) return errno_failure("create " + file.parent_path().string(), made.value());
  const std::string action = "append to " + file.string();
  const Fd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!fd) return errno_failure("open " + file.string(), errno);
  struct stat before {};
  if (::fstat(fd.get(), &before) != 0) return errno_failure("stat " + file.string(), errno);
  const ssize_t written = ::write(fd.get(), lines.data(), lines.size());
  if (written < 0) return errno_failure(action, errno);
  if (static_cast<std::size_t>(written) < lines.size())
    return truncate_partial_line(fd, action, before.st_size);
  return {};
}

namespace {

// More than this is not kept for the next start: the lines of hundreds of evictions.
constexpr std::size_t kMaxKept = 4u << 20;

// The end of a file, at most kMaxKept bytes. A file that cannot be read has none.
std::string end_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path);
  if (error || !file) return "";
  if (size > kMaxKept) file.seekg(static_cast<std::streamoff>(size - kMaxKept));
  return {std::istreambuf_iterator<char>(file), {}};
}

Instant instant_at(const nlohmann::json& instants, const char* key) {
  const auto found = instants.find(key);
  if (found == instants.end() || !found->is_number_integer()) return {};
  return Instant(std::chrono::nanoseconds(found->get<std::int64_t>()));
}

std::optional<RecordedEviction> recorded_eviction(const std::string& line) {
  const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (text_at(record, "outcome") != name(Ending::kEvicted)) return std::nullopt;
  const auto cgroup = record.find("cgroup"), instants = record.find("instants_ns");
  if (cgroup == record.end() || instants == record.end() || !instants->is_object())
    return std::nullopt;
  const auto id = cgroup->is_object() ? cgroup->find("id") : cgroup->end();
  if (id == cgroup->end() || !id->is_number_unsigned()) return std::nullopt;
  return RecordedEviction{.cgroup = CgroupId{id->get<std::uint64_t>()},
                          .terminated_at = instant_at(*instants, "terminated"),
                          .killed_at = instant_at(*instants, "killed")};
}

}  // namespace

std::vector<RecordedEviction> recorded_evictions(const std::filesystem::path& file,
                                                 const std::filesystem::path& unwritten_file) {
  std::vector<RecordedEviction> evictions;
  // In this order: a line is in the second file before it leaves the first.
  for (const std::filesystem::path& path : {unwritten_file, file}) {
    std::istringstream lines(end_of(path));
    for (std::string line; std::getline(lines, line);)
      if (const auto eviction = recorded_eviction(line)) evictions.push_back(*eviction);
  }
  return evictions;
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
    if (count_ == kQueueSize) {
      ++stats_.lost;
      return false;
    }
    std::swap(queue_[(first_ + count_) % kQueueSize], eviction);
    ++count_;
  }
  work_.notify_one();
  return true;
}

bool AuditLog::all_kept() const {
  const std::lock_guard lock(mutex_);
  return count_ == 0 && !unkept_;
}

AuditLog::AuditStats AuditLog::stats() const {
  const std::lock_guard lock(mutex_);
  AuditStats stats = stats_;
  stats.waiting = count_ + unwritten_.size();
  return stats;
}

void AuditLog::run() {
  set_thread_name("audit");
  std::unique_lock lock(mutex_);
  log::log_exceptions("take over the audit log", [&] { take_over_unwritten(lock); });
  if (!lock.owns_lock()) lock.lock();
  for (bool more = true; more;) {
    more = await_work(lock);
    const bool done = log::log_exceptions("write the audit log", [&] {
      format_queued(lock);
      write_unwritten(lock);
    });
    if (!lock.owns_lock()) lock.lock();
    if (!done) ++stats_.lost;
  }
  if (setup_.unwritten_file.empty()) stats_.lost += unwritten_.size();
}

// The lines that an earlier daemon kept and did not write, or wrote just before it ended. A last
// line without its end was cut short.
void AuditLog::take_over_unwritten(std::unique_lock<std::mutex>& lock) {
  if (setup_.unwritten_file.empty()) return;
  lock.unlock();
  const std::string kept = end_of(setup_.unwritten_file), written = end_of(setup_.file);
  lock.lock();
  std::size_t begin = 0;
  for (std::size_t end = kept.find('\n'); end != std::string::npos; end = kept.find('\n', begin)) {
    std::string line = kept.substr(begin, end + 1 - begin);
    begin = end + 1;
    if (written.find(line) == std::string::npos) store_line(std::move(line));
  }
  write_unwritten(lock);
}

bool AuditLog::keep_for_next_start(const std::string& line) {
  if (setup_.unwritten_file.empty()) return false;
  std::error_code missing;
  const auto size = std::filesystem::file_size(setup_.unwritten_file, missing);
  if (!missing && size + line.size() > kMaxKept) return false;
  const Result<> kept = append_lines(setup_.unwritten_file, line);
  if (!kept && !keeping_failed_)
    log::warning("{}: an eviction is not recorded if headroomd ends before it is written",
                 kept.error().what);
  keeping_failed_ = !kept;
  return kept.has_value();
}

// Waits for a record, for the time of the next retry, or for the stop. False: stopping, so this is
// the last round.
bool AuditLog::await_work(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return stop_ || count_ > 0; };
  if (unwritten_.empty())
    work_.wait(lock, has_work);
  else
    work_.wait_for(lock, setup_.retry_period, has_work);
  return !stop_;
}

// Also writes the flight recording. If that fails, the line is written without its file name.
std::string AuditLog::format_record(Eviction& eviction) {
  std::string file;
  if (const auto flight_recording = std::exchange(eviction.flight_recording, nullptr)) {
    auto written_file =
        write_flight_recording(setup_.file, *flight_recording, *eviction.decision.pod,
                               setup_.wall_time(flight_recording->at));
    if (written_file) {
      file = std::move(*written_file);
    } else {
      log::error("{}: the last minute before an eviction is lost", written_file.error().what);
      const std::lock_guard lock(mutex_);
      ++stats_.flight_recordings_lost;
    }
  }
  return audit_line(eviction, setup_.wall_time(eviction.decision.decided_at), setup_.qos_of, file);
}

void AuditLog::format_queued(std::unique_lock<std::mutex>& lock) {
  Eviction eviction;
  while (count_ > 0) {
    std::swap(eviction, queue_[first_]);
    lock.unlock();
    std::string line;
    try {
      line = format_record(eviction);
    } catch (const std::exception& e) {
      log::error("format an audit record: {}", e.what());
    }
    const bool kept = line.empty() || keep_for_next_start(line);
    lock.lock();
    unkept_ |= !kept;
    // Swap back, so that the queue keeps its buffers. The entry is free only after that.
    std::swap(eviction, queue_[first_]);
    first_ = (first_ + 1) % kQueueSize;
    --count_;
    store_line(std::move(line));
  }
}

void AuditLog::store_line(std::string line) {
  if (line.empty() || unwritten_.size() == kMaxUnwritten) ++stats_.lost;
  if (line.empty()) return;
  if (unwritten_.size() == kMaxUnwritten) unwritten_.pop_front();
  unwritten_.push_back(std::move(line));
}

void AuditLog::write_unwritten(std::unique_lock<std::mutex>& lock) {
  while (!unwritten_.empty()) {
    const std::string line = unwritten_.front();
    lock.unlock();
    const Result<> result = append_lines(setup_.file, line);
    log_write_state(result);
    lock.lock();
    if (!result) {
      ++stats_.failed_writes;
      return;
    }
    unwritten_.pop_front();
    ++stats_.written;
  }
  unkept_ = false;
  if (!setup_.unwritten_file.empty()) ::unlink(setup_.unwritten_file.c_str());
}

// Logs once when writing begins to fail, and once when it works again.
void AuditLog::log_write_state(const Result<>& result) {
  if (!result && !failing_)
    log::error("{}; keeping the last {} evictions in memory and trying again", result.error().what,
               kMaxUnwritten);
  if (result && failing_) log::info("audit log {} takes lines again", setup_.file.string());
  failing_ = !result;
}

}  // namespace headroom::report
