// SPDX-License-Identifier: Apache-2.0
// RuntimeNames: what container runtimes say of their containers, remembered: a container's name
// never changes, and reading it again at every scrape would cost a file each.
#pragma once

#include "daemon/told_names.h"
#include "observe/oci_bundle.h"
#include "report/node_view.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace headroom::daemon {

class RuntimeNames final : public report::ContainerNames {
 public:
  // `told` comes first: it needs no file. May be null.
  explicit RuntimeNames(std::shared_ptr<const ToldNames> told = nullptr,
                        std::filesystem::path root = "/")
      : told_(std::move(told)), root_(std::move(root)) {}

  const ContainerIdentity* find(std::string_view runtime_id) override {
    std::string id(runtime_id);
    // Those that are gone are forgotten with all others, now and then: it costs a scrape some
    // files.
    if (known_.size() >= kMost && !known_.contains(id)) known_.clear();
    Entry& entry = known_[std::move(id)];
    if (!entry.told && told_) entry.told = told_->find(runtime_id);
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
  std::shared_ptr<const ToldNames> told_;
  std::filesystem::path root_;
  std::unordered_map<std::string, Entry> known_;
};

}  // namespace headroom::daemon
