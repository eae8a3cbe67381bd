// SPDX-License-Identifier: Apache-2.0
// CpuStateFile: the kubelet's cpu_manager_state on disk: which container has which CPUs, kept
// across a crash. CheckpointFile: what it has in common with memory_manager_state.
#pragma once

#include "act/cpus/cpu_checkpoint.h"
#include "base/atomic_file.h"

#include <headroom/result.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace headroom::act {

class CheckpointFile {
 public:
  explicit CheckpointFile(std::filesystem::path path, AtStep at = nullptr)
      : path_(std::move(path)), at_(std::move(at)) {}

  // A damaged one, out of the way as .damaged: nothing is lost.
  Result<> move_damaged_file() const;

  const std::filesystem::path& path() const { return path_; }

 protected:
  Result<std::optional<std::string>> read() const;
  Result<> write(std::string text);

 private:
  std::filesystem::path path_;
  AtStep at_;
  std::string written_;
};

class CpuStateFile : public CheckpointFile {
 public:
  using CheckpointFile::CheckpointFile;

  // Of any kubelet. Absent: there is none yet. An error is of the file, which stays where it is:
  // it could not be read, or is damaged.
  Result<std::optional<CpuCheckpoint>> load() const;

  // In the form every kubelet since 1.18 reads. Writes nothing that it wrote already.
  Result<> save(const std::string& policy, const CpuState& state);
};

}  // namespace headroom::act
