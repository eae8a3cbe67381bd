// SPDX-License-Identifier: Apache-2.0
#include "kube/health_file.h"

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "base/log/journal.h"
#include "kube/poll_backoff.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

namespace headroom::kube {

Result<> health(const config::KubernetesConfig& config, std::time_t now) {
  if (config.kubelet.url.empty()) return {};
  constexpr std::chrono::seconds kSpare{15};
  // The longest wait, and the timeouts of two requests: pods and configz.
  const Duration longest = std::max<Duration>(config.kubelet.period, Backoff{}.max_wait) +
                           2 * config.kubelet.timeout + kSpare;
  const std::string file = config.status_file().string();
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return errno_failure("stat " + file, errno);
  const std::chrono::seconds age(now - status.st_mtim.tv_sec);
  if (age <= longest) return {};
  return failure(file + " was last written " + std::to_string(age.count()) + " s ago");
}

void HealthFile::publish(const std::string& part, nlohmann::ordered_json state) {
  const std::lock_guard lock(mutex_);
  parts_[part] = std::move(state);
  nlohmann::ordered_json whole;
  for (const auto& [name, shown] : parts_)
    whole[name] = shown;
  std::string text = to_json_text(whole, 1) + "\n";
  if (text == written_) return;
  const auto done = write_atomically(file_, text, {.mode = 0644});
  if (done)
    written_ = std::move(text);
  else if (!unwritten_)
    log::warning("{}", done.error().what);
  unwritten_ = !done;
}

}  // namespace headroom::kube
