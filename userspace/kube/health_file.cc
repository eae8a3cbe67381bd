// SPDX-License-Identifier: Apache-2.0
#include "kube/health_file.h"

#include "base/atomic_file.h"
#include "base/log/journal.h"

#include <utility>

namespace headroom::kube {

void HealthFile::publish(const std::string& part, nlohmann::ordered_json state) {
  const std::lock_guard lock(mutex_);
  parts_[part] = std::move(state);
  nlohmann::ordered_json whole;
  for (const auto& [name, shown] : parts_)
    whole[name] = shown;
  std::string text = whole.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (text == written_) return;
  const auto done = write_atomically(file_, text, {.mode = 0644});
  if (done)
    written_ = std::move(text);
  else if (!unwritten_)
    log::warning("{}", done.error().what);
  unwritten_ = !done;
}

}  // namespace headroom::kube
