// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/file_reader.h"

#include "base/clock.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/sources/directory_watch.h"
#include "daemon/sources/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace headroom::daemon {
namespace {

// Files that change together are read together: the delay after the first change.
constexpr std::chrono::milliseconds kReadDelay{50};
// After a reading, the next one waits so many times as long as that took, for so long at most: what
// changes all the time does not take a CPU.
constexpr int kRest = 4;
constexpr std::chrono::seconds kMaxRest{10};
// A directory that was removed and created again is found by polling.
constexpr std::chrono::seconds kRetryPeriod{1}, kCheckPeriod{10};

}  // namespace

// The thread's, too: it may outlive the reader.
struct FileReader::Shared {
  const Fd request = open_event_fd();  // what follows has changed
  const Fd answer = open_event_fd();   // `news` has changed
  std::mutex mutex{};                  // of what follows
  std::condition_variable end{};
  std::optional<Places> places{};
  std::optional<Amounts> reload{};
  bool stop = false;
  bool ended = false;
  News news{};
};

// What the thread runs: an event loop of its own, with the watched directories.
class FileReader::Thread {
 public:
  Thread(Shared& shared, Load load, observe::ManifestCache cache, std::string configz)
      : shared_(shared),
        load_(std::move(load)),
        cache_(std::move(cache)),
        configz_(std::move(configz)) {}

  // Until the reader is destroyed.
  Result<> run() {
    auto event = make_event();
    if (!event) return tl::make_unexpected(event.error());
    event_ = std::move(*event);
    auto read = add_idle_timer(event_.get(), &on_read_timer, this, "manifests");
    if (!read) return tl::make_unexpected(read.error());
    read_timer_ = std::move(*read);
    auto retry = add_idle_timer(event_.get(), &on_retry_timer, this, "directories");
    if (!retry) return tl::make_unexpected(retry.error());
    retry_timer_ = std::move(*retry);
    int r =
        sd_event_add_io(event_.get(), nullptr, shared_.request.get(), EPOLLIN, &on_request, this);
    if (r >= 0) r = sd_event_loop(event_.get());
    if (r < 0) return errno_failure("run an event loop", -r);
    return {};
  }

 private:
  // Returns false if the reader was destroyed while the thread read.
  template <typename Change>
  bool publish(Change&& change) {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.stop) return false;
    change(shared_.news);
    signal_event_fd(shared_.answer.get());
    return true;
  }

  void handle_request() {
    std::optional<Places> places;
    std::optional<Amounts> capacity;
    {
      const std::lock_guard lock(shared_.mutex);
      if (shared_.stop) return static_cast<void>(sd_event_exit(event_.get(), 0));
      places = std::exchange(shared_.places, std::nullopt);
      capacity = std::exchange(shared_.reload, std::nullopt);
    }
    if (places) watch(std::move(*places));
    if (capacity) reload(*capacity);
  }

  void reload(const Amounts& capacity) {
    config::LoadResult loaded = load_(capacity);
    if (loaded.diagnostics.empty()) configz_ = loaded.configz;
    publish([&](News& news) { news.config = std::move(loaded); });
  }

  void watch(Places places) {
    places_ = std::move(places);
    directories_.clear();
    const auto add = [&](const std::filesystem::path& directory, DirectoryWatch::Changed changed) {
      directories_.push_back(
          std::make_unique<DirectoryWatch>(event_.get(), directory, std::move(changed)));
    };
    for (const observe::ManifestSource& source : places_.manifests) {
      std::error_code ignored;
      // headroom-kube creates its own directory.
      if (!source.options.of_kubelet)
        std::filesystem::create_directories(source.directory, ignored);
      add(source.directory, [this](std::string_view) { schedule_read(); });
    }
    if (!places_.configz.empty())
      add(places_.run_dir, [this](std::string_view) { look_at_configz(); });
    watch_missing_directories();
    for (const auto& directory : directories_)
      if (!directory->is_watching())
        log::info("{} is not there yet, or cannot be watched", directory->directory().native());
    logged_errors_.clear();  // so that they are logged again
    schedule_read();
  }

  void watch_missing_directories() {
    bool all = true;
    for (const auto& directory : directories_)
      all = directory->start().has_value() && all;
    arm_timer(retry_timer_, all ? kCheckPeriod : kRetryPeriod);
  }

  // Further changes do not delay the read.
  void schedule_read() {
    int enabled = SD_EVENT_OFF;
    sd_event_source_get_enabled(read_timer_.get(), &enabled);
    if (enabled != SD_EVENT_OFF) return;
    const Duration rest = std::min<Duration>(kRest * reading_took_, kMaxRest);
    arm_timer(read_timer_, std::max<Duration>(kReadDelay, rest));
  }

  // If the kubelet's own configuration is new or has changed since it was read.
  void look_at_configz() {
    std::string version = config::configz_version(places_.configz);
    if (version.empty() || version == configz_) return;
    configz_ = std::move(version);  // a refused version is not tried again
    publish([](News& news) { news.configz_changed = true; });
  }

  void read() {
    const Instant began = observe::now();
    observe::Manifests manifests = cache_.read(places_.manifests);
    reading_took_ = observe::now() - began;
    std::vector<std::string> errors;
    for (const auto* list : {&manifests.diagnostics, &manifests.kubelet_complaints})
      for (const config::Diagnostic& diagnostic : *list)
        errors.push_back(to_string(diagnostic));
    if (!publish([&](News& news) { news.manifests = std::move(manifests); })) return;
    if (errors != logged_errors_)
      for (const std::string& error : errors)
        log::error("{}", error);
    logged_errors_ = std::move(errors);
  }

  static int on_request(sd_event_source*, int descriptor, uint32_t, void* thread) {
    clear_event_fd(descriptor);
    log::log_exceptions("read files", [&] { static_cast<Thread*>(thread)->handle_request(); });
    return 0;
  }
  static int on_read_timer(sd_event_source*, uint64_t, void* thread) {
    log::log_exceptions("read manifests", [&] { static_cast<Thread*>(thread)->read(); });
    return 0;
  }
  static int on_retry_timer(sd_event_source*, uint64_t, void* thread) {
    log::log_exceptions("look for directories",
                        [&] { static_cast<Thread*>(thread)->watch_missing_directories(); });
    return 0;
  }

  Shared& shared_;
  const Load load_;
  observe::ManifestCache cache_;
  std::string configz_;  // of the configuration that was read last
  Places places_;
  Duration reading_took_{};
  std::vector<std::string> logged_errors_;  // of manifests, as last logged
  Event event_;
  EventSource read_timer_;
  EventSource retry_timer_;  // looks for directories that do not exist yet
  std::vector<std::unique_ptr<DirectoryWatch>> directories_;
};

Result<std::unique_ptr<FileReader>> FileReader::start(Load load, observe::ManifestCache cache,
                                                      std::string configz) {
  std::unique_ptr<FileReader> reader(new FileReader);
  if (!reader->shared_->request || !reader->shared_->answer)
    return errno_failure("create an eventfd", errno);
  std::thread([shared = reader->shared_, load = std::move(load), cache = std::move(cache),
               configz = std::move(configz)]() mutable {
    report::set_thread_name("files");
    log::log_exceptions("watch files", [&] {
      const auto ended =
          Thread(*shared, std::move(load), std::move(cache), std::move(configz)).run();
      if (!ended)
        log::error("{}: manifests and the configuration are read again only after a restart",
                   ended.error().what);
    });
    const std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->end.notify_all();
  }).detach();
  return reader;
}

FileReader::FileReader() : shared_(std::make_shared<Shared>()) {}

FileReader::~FileReader() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  signal_event_fd(shared_->request.get());
  shared_->end.wait_for(lock, kEndWait, [this] { return shared_->ended; });
}

void FileReader::watch(Places places) {
  const std::lock_guard lock(shared_->mutex);
  shared_->places = std::move(places);
  signal_event_fd(shared_->request.get());
}

void FileReader::request_reload(Amounts capacity) {
  const std::lock_guard lock(shared_->mutex);
  shared_->reload = std::move(capacity);
  signal_event_fd(shared_->request.get());
}

int FileReader::descriptor() const {
  return shared_->answer.get();
}

FileReader::News FileReader::take() {
  clear_event_fd(shared_->answer.get());
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->news, {});
}

}  // namespace headroom::daemon
