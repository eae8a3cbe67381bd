// SPDX-License-Identifier: Apache-2.0
// RuntimeNames: what container runtimes say of their containers, remembered: a container's name
// never changes, and reading it again at every scrape would cost a file each.
#pragma once

#include "observe/oci_bundle.h"
#include "report/node_view.h"

#include <optional>
#include <string>
#include <unordered_map>

namespace headroom::daemon {

class RuntimeNames final : public report::ContainerNames {
 public:
  explicit RuntimeNames(std::filesystem::path root = "/") : root_(std::move(root)) {}

  const ContainerIdentity* find(std::string_view runtime_id) override {
    std::string id(runtime_id);
    // Those that are gone are forgotten with all others, now and then: it costs a scrape some
    // files.
    if (known_.size() >= kMost && !known_.contains(id)) known_.clear();
    Entry& entry = known_[std::move(id)];
    // The runtime may write it down a moment after the cgroup appears; not later than that.
    if (!entry.told && entry.looks < kLooks) {
      ++entry.looks;
      entry.told = observe::find_container(runtime_id, root_);
    }
    return entry.told ? &*entry.told : nullptr;
  }

 private:
  static constexpr std::size_t kMost = 16'384;
  static constexpr int kLooks = 5;
  struct Entry {
    int looks = 0;
    std::optional<ContainerIdentity> told;
  };
  std::filesystem::path root_;
  std::unordered_map<std::string, Entry> known_;
};

}  // namespace headroom::daemon
