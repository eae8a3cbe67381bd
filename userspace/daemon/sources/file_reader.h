// SPDX-License-Identifier: Apache-2.0
// FileReader: reads the manifests whenever they change, and the configuration when it is asked to,
// on a thread of its own, because a read from a mount whose server is gone does not return.
//
// The loop polls descriptor(), takes what was read, and does not wait.
#pragma once

#include "config/load/load.h"
#include "judge/allocatable/amounts.h"
#include "manifest/manifest_cache.h"

#include <headroom/result.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::daemon {

class FileReader {
 public:
  struct Places {
    std::vector<observe::ManifestSource> manifests;
    std::filesystem::path run_dir;  // headroom.kubernetes.runDirectory
    std::filesystem::path configz;  // the kubelet's own configuration, in run_dir; empty: unused
  };
  // What was read since the last take().
  struct News {
    std::optional<config::LoadResult> config;     // after request_reload(); may hold errors
    std::optional<observe::Manifests> manifests;  // all of them, if any changed
    bool configz_changed = false;                 // request_reload() is due
  };
  // Reads the configuration and checks it against this capacity of the node; called on the thread.
  using Load = std::function<config::LoadResult(const Amounts& capacity)>;
  // How long the end waits for the thread; one that hangs is left behind.
  static constexpr std::chrono::milliseconds kEndWait{1000};

  // `cache` has read the manifests already. `configz`: LoadResult::configz of the configuration in
  // force.
  static Result<std::unique_ptr<FileReader>> start(Load load, observe::ManifestCache cache,
                                                   std::string configz);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Watches these places instead of the earlier ones, and reads their manifests.
  void watch(Places places);
  void request_reload(Amounts capacity);

  // Readable when take() returns something new.
  int descriptor() const;
  News take();

 private:
  struct Shared;
  class Thread;

  FileReader();

  const std::shared_ptr<Shared> shared_;
};

}  // namespace headroom::daemon
