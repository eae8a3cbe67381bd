// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/turn_recorder.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::daemon {
namespace {

std::int64_t wall_offset() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(wall).count() - observe::now().time_since_epoch().count();
}

}  // namespace

PipeWriter::PipeWriter(Fd pipe) : pipe_(std::move(pipe)) {
  buffer_.reserve(kCapacity);
  writer_ = std::thread([this] { run(); });
}

PipeWriter::~PipeWriter() {
  {
    // stop_ is set with the mutex held: otherwise the notification could be lost between the
    // writer's check and its wait.
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  data_ready_.notify_one();
  writer_.join();
}

bool PipeWriter::push(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (buffer_.size() + bytes.size() > kCapacity) return false;
    buffer_ += bytes;
  }
  data_ready_.notify_one();
  return true;
}

void PipeWriter::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  data_ready_.notify_one();
}

void PipeWriter::run() {
  report::set_thread_name("recording");
  // With SIGPIPE blocked, write() to a pipe without a reader returns an error.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  log::log_exceptions("write a recording", [this] { write_until_closed(); });
  pipe_.reset();
  done_ = true;
}

void PipeWriter::write_until_closed() {
  std::string bytes;
  bytes.reserve(kCapacity);
  for (bool more = true; more;) {
    {
      std::unique_lock lock(mutex_);
      data_ready_.wait(lock, [&] { return stop_ || closed_ || !buffer_.empty(); });
      std::swap(bytes, buffer_);
      more = !stop_ && !closed_;
    }
    if (!write_all(bytes)) break;
    bytes.clear();
  }
}

// Returns false if the pipe has no reader any more, or the recording is to stop.
bool PipeWriter::write_all(const std::string& bytes) {
  std::string_view left(bytes);
  for (auto idle = std::chrono::milliseconds(0); !left.empty();) {
    const ssize_t written = ::write(pipe_.get(), left.data(), left.size());
    if (written > 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
      idle = {};
      continue;
    }
    if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (stop_ || idle >= kStallLimit) return false;
    constexpr std::chrono::milliseconds kStep(200);
    pollfd room{.fd = pipe_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, static_cast<int>(kStep.count())) == 0) idle += kStep;
  }
  return true;
}

// Writes what a replay needs before the next turn: the policy, and the history after this turn.
void RecordingStream::write_baseline(const Policy& policy, const Snapshot& snapshot,
                                     const Verdict& verdict) {
  frame_.clear();
  if (!until_) {
    until_ = snapshot.at + length_;
    recording::TapeWriter::header(frame_, {HEADROOM_VERSION, wall_offset_});
  }
  tape_.baseline(frame_, snapshot.at, policy, verdict.after, lost_since_);
  has_baseline_ = writer_.push(frame_);
  if (has_baseline_) lost_since_ = 0;
}

bool RecordingStream::write_turn(const Policy& policy, const Snapshot& snapshot,
                                 const Verdict& verdict, std::span<const Outcome> outcomes,
                                 const recording::SystemUse* system) {
  if (writer_.done()) return false;
  last_ = snapshot.at;
  if (!until_) {
    write_baseline(policy, snapshot, verdict);
    return true;
  }
  frame_.clear();
  if (snapshot.at >= *until_) {
    tape_.end(frame_, snapshot.at, lost_since_);
    writer_.push(frame_);
    return false;
  }
  if (has_baseline_) tape_.turn(frame_, snapshot, verdict, outcomes);
  if (has_baseline_ && system) tape_.system_use(frame_, *system);
  if (has_baseline_ && writer_.push(frame_)) return true;
  ++lost_since_;
  ++lost_;
  write_baseline(policy, snapshot, verdict);
  return true;
}

bool RecordingStream::write_limit_plans(const recording::LimitPlans& made) {
  frame_.clear();
  tape_.limit_plans(frame_, made);
  return has_baseline_ && writer_.push(frame_);
}

void RecordingStream::change(const Policy& policy) {
  if (!has_baseline_) return;
  frame_.clear();
  tape_.change(frame_, last_, policy);
  has_baseline_ = writer_.push(frame_);
}

Result<std::string> TurnRecorder::start(Fd pipe, std::chrono::seconds length) {
  if (length < std::chrono::seconds(1) || length > kMaxDuration)
    return failure(fmt::format("a recording lasts from 1 s to {} s", kMaxDuration.count()));
  // With O_NONBLOCK a slow reader delays only the recording, and a reader that exits is noticed.
  const int flags = ::fcntl(pipe.get(), F_GETFL);
  if (flags < 0 || ::fcntl(pipe.get(), F_SETFL, flags | O_NONBLOCK) < 0)
    return errno_failure("prepare the pipe of the recording", errno);
  const std::lock_guard lock(mutex_);
  if (stream_ && !stream_->done())
    return failure("a recording is in progress; try again when it is over");
  stream_ = std::make_shared<RecordingStream>(std::move(pipe), length, wall_offset());
  limit_plans_->switch_on();
  active_ = true;
  return fmt::format(R"({{"seconds":{}}})", length.count());
}

std::shared_ptr<RecordingStream> TurnRecorder::stream() {
  const std::lock_guard lock(mutex_);
  return stream_;
}

// If another recording has started meanwhile, active_ stays true.
void TurnRecorder::finish(const std::shared_ptr<RecordingStream>& finished) {
  finished->close();
  const std::lock_guard lock(mutex_);
  if (stream_ != finished) return;
  active_ = false;
  limit_plans_->switch_off();
}

// Before the turn: after the last one nothing is written.
void TurnRecorder::write_limit_plans(RecordingStream& stream, Instant at) {
  const recording::LimitPlans made = limit_plans_->take(at);
  if (made.plans.empty() && made.lost == 0) return;
  if (stream.write_limit_plans(made))
    lost_ += made.lost;
  else
    limit_plans_->lose(made);
}

void TurnRecorder::reconfigure(const Policy& policy) {
  policy_ = policy;
  if (active_) stream()->change(policy);
}

void TurnRecorder::record_turn(const Snapshot& snapshot, const Verdict& verdict,
                               std::span<const Outcome> outcomes) {
  if (!active_) return;
  const std::shared_ptr<RecordingStream> active = stream();
  const std::uint64_t lost = active->lost();
  bool continues = false;
  try {
    const recording::SystemUse* system = system_ ? system_->read(snapshot) : nullptr;
    write_limit_plans(*active, snapshot.at);
    continues = active->write_turn(policy_, snapshot, verdict, outcomes, system);
  } catch (const std::exception&) {
    // Out of memory: the recording ends early, which its reader notices.
  }
  lost_ += active->lost() - lost;
  if (!continues) finish(active);
}

}  // namespace headroom::daemon
