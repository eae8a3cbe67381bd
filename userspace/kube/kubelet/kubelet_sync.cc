// SPDX-License-Identifier: Apache-2.0
// The input worker: queries the kubelet periodically and keeps its last response in files.
#include "base/atomic_file.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "kube/http_client.h"
#include "kube/kube_config.h"
#include "kube/kubelet/pod_directory.h"
#include "kube/kubelet/pod_list.h"
#include "kube/pod_cgroup_watch.h"
#include "kube/poll_backoff.h"
#include "kube/workers.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace headroom::kube {
namespace {

// A kubelet's configuration changes only when it restarts; its pods show that sooner.
constexpr std::chrono::minutes kConfigzPeriod{1};
constexpr std::chrono::milliseconds kLongestPoll{60'000};

// What the operator should check for an HTTP status other than 200.
std::string status_hint(long status, std::string_view path) {
  switch (status) {
    case 401:
      return ": the kubelet did not accept our credentials: see tokenFile";
    case 403:
      return ": not allowed: the service account needs get of nodes/proxy, or of nodes/" +
             std::string(path == "/configz" ? "configz" : "pods");
    case 404:
      return ": not found: see enableDebuggingHandlers and readOnlyPort of the kubelet";
    default:
      return "";
  }
}

// The pods of the kubelet's last answer, as files in a directory.
class PodsSync {
 public:
  explicit PodsSync(std::filesystem::path directory) : path_(std::move(directory)) {}

  // Opens the directory, once.
  Result<> open() {
    if (directory_) return {};
    auto opened = PodDirectory::open(path_);
    if (!opened) return tl::make_unexpected(opened.error());
    directory_ = std::move(*opened);
    return {};
  }

  // `files` replace those of the last answer. The directory must be open.
  Result<> update(const PodFiles& files) {
    warn_of(
        cut_, files.cut,
        "labels or annotations beyond " + std::to_string(kMaxLabels) + " are dropped from pods");
    warn_of(too_large_, files.too_large,
            "pods are omitted, because their files would be larger than headroomd reads");
    const PodDirectory::Changes changes = directory_->sync(files.pods);
    pods_ = files.pods.size();
    ended_ = files.ended;
    invalid_ = files.invalid;
    written_ += changes.written;
    removed_ += changes.removed;
    updated_at_ = std::time(nullptr);
    if (!changes.failed.empty()) return tl::make_unexpected(changes.failed.front());
    return {};
  }

  std::size_t pods() const { return pods_; }
  std::uint64_t written() const { return written_; }

  void add_to(nlohmann::ordered_json& state) const {
    state["pods"] = pods_;
    state["endedPods"] = ended_;
    state["invalidPods"] = invalid_;
    state["cutPods"] = cut_.size();
    state["tooLargePods"] = too_large_.size();
    state["filesWritten"] = written_;
    state["filesRemoved"] = removed_;
    state["podsAt"] = updated_at_;  // seconds since 1970; 0: no list yet
  }

 private:
  // Logs a warning when the set of these pods changes.
  static void warn_of(std::vector<std::string>& known, std::vector<std::string> pods,
                      std::string_view what) {
    std::ranges::sort(pods);
    if (pods == known) return;
    known = pods;
    if (pods.empty()) return;
    constexpr std::size_t kNamed = 10;
    std::string names;
    for (std::size_t i = 0; i < std::min(pods.size(), kNamed); ++i)
      names += (i == 0 ? "" : ", ") + pods[i];
    if (pods.size() > kNamed) names += " and " + std::to_string(pods.size() - kNamed) + " more";
    log::warning("{}: {}", what, names);
  }

  std::filesystem::path path_;
  std::optional<PodDirectory> directory_;
  std::vector<std::string> cut_, too_large_;  // namespace/name, as last reported
  std::size_t pods_ = 0, ended_ = 0, invalid_ = 0;
  std::uint64_t written_ = 0, removed_ = 0;
  std::time_t updated_at_ = 0;
};

class KubeletSync {
 public:
  KubeletSync(const config::Config& config, HealthFile& health_file, const std::stop_token& stop,
              const std::filesystem::path& cgroup_root)
      : config_(config.kubernetes),
        client_(
            complete_server(config_.kubelet, node_name_of(config, &std::getenv), kServiceAccount)),
        health_file_(health_file),
        stop_(stop),
        retry_{.first = std::min<Duration>(Backoff{}.first, config_.kubelet.period)},
        cgroups_(cgroup_root, config.pods_cgroup),
        pace_(config_.kubelet.period),
        pods_(config_.pods_dir()) {}

  void run() {
    log::info("reading pods from the kubelet at {}", client_.server().url);
    while (!stop_.stop_requested()) {
      const std::uint64_t written = pods_.written();
      const auto polled = poll();
      pace_.asked(Clock::now(), early_, pods_.written() > written);
      if (stop_.stop_requested()) return;  // an aborted query is no failure
      record_poll(polled);
      wait(polled ? config_.kubelet.period : retry_.after(failures_, dice_()));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result<> poll() {
    ++polls_.all;
    if (auto opened = pods_.open(); !opened) return opened;
    if (auto pods = sync_pods(); !pods) return pods;
    return config_.kubelet.configz ? sync_configz() : Result<>{};
  }

  Result<std::string> get(const std::string& path) {
    auto response = client_.http({.path = path}, stop_);
    if (!response) return tl::make_unexpected(response.error());
    if (response->status != 200)
      return failure("GET " + client_.server().url + path + ": " +
                     std::to_string(response->status) + status_hint(response->status, path));
    return std::move(response->body);
  }

  Result<> sync_pods() {
    const auto answer = get("/pods");
    if (!answer) return tl::make_unexpected(answer.error());
    const auto files = pod_files(*answer);
    if (!files) return failure("GET " + client_.server().url + "/pods: " + files.error().what);
    return pods_.update(*files);
  }

  // Also after a failure: a kubelet that was restarted may have another configuration.
  Result<> sync_configz() {
    const auto now = Clock::now();
    if (failures_ == 0 && configz_at_ && now - *configz_at_ < kConfigzPeriod) return {};
    const auto answer = get("/configz");
    if (!answer) return tl::make_unexpected(answer.error());
    const auto text = configuration_from(*answer);
    if (!text) return failure("GET " + client_.server().url + "/configz: " + text.error().what);
    if (*text != configuration_) {
      if (auto written = write_atomically(config_.configz_file(), *text, {.mode = 0644}); !written)
        return written;
      log::info("wrote the kubelet's current configuration to {}", config_.configz_file().native());
      configuration_ = *text;
    }
    configz_at_ = now;
    return {};
  }

  // Each error is logged once, however long it lasts.
  void record_poll(const Result<>& polled) {
    if (polled) {
      if (failures_ > 0)
        log::info("the kubelet answers again, after {} failures: {} pods", failures_, pods_.pods());
      failures_ = 0;
      last_error_.clear();
    } else {
      ++failures_;
      ++polls_.failed;
      if (polled.error().what != last_error_)
        log::warning("{}; the last known pods stay", polled.error().what);
      last_error_ = polled.error().what;
    }
    publish();
  }

  void publish() {
    nlohmann::ordered_json state;
    state["url"] = client_.server().url;
    state["lastPollSucceeded"] = failures_ == 0;
    state["error"] = last_error_;
    state["failuresInARow"] = failures_;
    state["polls"] = polls_.all;
    state["failedPolls"] = polls_.failed;
    state["pollsForNewPods"] = polls_.early;
    pods_.add_to(state);
    state["periodSeconds"] = seconds_of(config_.kubelet.period);
    state["configz"] = config_.kubelet.configz;
    health_file_.publish("kubelet", std::move(state));
  }

  // Waits for `length`, or less if a pod's cgroup appears. After a failure the wait is never
  // shortened: a kubelet that does not answer is not queried more often because of new cgroups.
  void wait(Duration length) {
    early_ = false;
    auto until = Clock::now() + length;
    const Fd stopped = open_event_fd();
    const std::stop_callback wake(stop_, [&] { signal_event_fd(stopped.get()); });
    cgroups_.cover();
    while (!stop_.stop_requested()) {
      const auto now = Clock::now();
      if (cgroups_.take() && failures_ == 0 && pace_.due(now) < until) {
        until = pace_.due(now);
        early_ = true;
        ++polls_.early;
      }
      if (now >= until) return;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
      std::array<pollfd, 2> watched{
          {{stopped.get(), POLLIN, 0}, {cgroups_.descriptor(), POLLIN, 0}}};
      ::poll(watched.data(), watched.size(),
             static_cast<int>(std::min(left, kLongestPoll).count()));
    }
  }

  const config::KubernetesConfig config_;
  HttpClient client_;
  HealthFile& health_file_;
  const std::stop_token& stop_;
  const Backoff retry_;
  PodCgroupWatch cgroups_;
  QueryPace pace_;
  bool early_ = false;  // a new cgroup of a pod is the reason for this query
  std::minstd_rand dice_{std::random_device{}()};

  PodsSync pods_;
  std::string configuration_;  // the kubelet's, as last written
  std::optional<Clock::time_point> configz_at_;
  std::string last_error_;
  unsigned failures_ = 0;  // since the last success
  struct Polls {
    std::uint64_t all = 0, failed = 0;
    std::uint64_t early = 0;  // because a new cgroup of a pod appeared
  };
  Polls polls_;
};

}  // namespace

void sync_from_kubelet(const config::Config& config, HealthFile& health_file,
                       const std::stop_token& stop, const std::filesystem::path& cgroup_root) {
  KubeletSync(config, health_file, stop, cgroup_root).run();
}

}  // namespace headroom::kube
