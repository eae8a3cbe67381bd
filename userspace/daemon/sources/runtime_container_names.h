// SPDX-License-Identifier: Apache-2.0
// RuntimeContainerNames: the identities of containers from the runtimes' files, cached: a
// container's name never changes, and reading it at every scrape would cost one file for each
// container.
#pragma once

#include "manifest/pod_status.h"
#include "observe/pod/oci_bundle.h"
#include "report/view/node_view.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace headroom::daemon {

// KubeletContainerNames: the identities of containers from a kubelet's pods: set by the loop, read
// by other threads.

class KubeletContainerNames {
 public:
  void set(observe::ContainerIds ids) {
    const std::lock_guard lock(mutex_);
    ids_.swap(ids);
  }
  std::optional<ContainerIdentity> find(std::string_view runtime_id) const {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(runtime_id);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  observe::ContainerIds ids_;
};

class RuntimeContainerNames final : public report::ContainerNames {
 public:
  // `kubelet_names` are used first: they need no file. May be null.
  explicit RuntimeContainerNames(
      std::shared_ptr<const KubeletContainerNames> kubelet_names = nullptr,
      std::filesystem::path root = "/")
      : kubelet_names_(std::move(kubelet_names)), root_(std::move(root)) {}

  const ContainerIdentity* find(std::string_view runtime_id) override {
    std::string id(runtime_id);
    // A full cache is emptied: a scrape then reads the files again.
    if (identities_.size() >= kMax && !identities_.contains(id)) identities_.clear();
    Entry& entry = identities_[std::move(id)];
    if (!entry.kubelet_names && kubelet_names_)
      entry.kubelet_names = kubelet_names_->find(runtime_id);
    // The runtime may write the file a moment after the cgroup appears.
    if (!entry.kubelet_names && entry.reads < kMaxReads) {
      ++entry.reads;
      entry.kubelet_names = observe::find_container(runtime_id, root_);
    }
    return entry.kubelet_names ? &*entry.kubelet_names : nullptr;
  }

 private:
  static constexpr std::size_t kMax = 16'384;
  static constexpr int kMaxReads = 5;
  struct Entry {
    int reads = 0;
    std::optional<ContainerIdentity> kubelet_names;
  };
  std::shared_ptr<const KubeletContainerNames> kubelet_names_;
  std::filesystem::path root_;
  std::unordered_map<std::string, Entry> identities_;
};

}  // namespace headroom::daemon
