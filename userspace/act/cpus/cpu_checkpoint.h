// SPDX-License-Identifier: Apache-2.0
// CpuCheckpoint: the kubelet's cpu_manager_state as text and value (kubelet: cm/cpumanager/state);
// CpuStateFile keeps it in a file.
#pragma once

#include "base/atomic_file.h"
#include "judge/cpuset/policy/cpu_state.h"

#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::act {

// Go values as text in go-spew's rendering with sorted keys: the kubelet's checksums are computed
// over it.

template <class Map, class Render>
std::string rendered_map(const Map& map, Render render) {
  std::string text = "map[";
  for (const auto& [key, value] : map) {
    if (text.back() != '[') text += ' ';
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(key)>>)
      text += std::to_string(key);
    else
      text += key;
    text += ':';
    text += render(value);
  }
  return text + ']';
}

// The versions of the file, by the kubelets that write them.
enum class CheckpointVersion : std::uint8_t {
  kV1,  // to 1.17: by container id instead of pod and name
  kV2,  // 1.18 and later
  kV3,  // 1.36 with PodLevelResourceManagers: podEntries
  kV4,  // newest: the fields of V3 for older readers, and all data as text with a checksum
};

struct CpuCheckpoint {
  std::string policy;  // "none", "static"
  CpuState state{};
  std::map<std::string, CpuSet, std::less<>> by_container_id{};  // of V1, to be migrated
  CheckpointVersion version = CheckpointVersion::kV4;            // what it was read from

  friend bool operator==(const CpuCheckpoint&, const CpuCheckpoint&) = default;
};

struct CheckpointError {
  enum class Kind : std::uint8_t {
    kNotACheckpoint,  // not JSON, or with other fields
    kCorrupt,         // the checksum does not match
    kBadCpuSet,
  };
  Kind kind;
  std::string what;
};

// Decodes any version. A checksum of 0 is not verified, as upstream; the one of V4 always is.
tl::expected<CpuCheckpoint, CheckpointError> decode_checkpoint(std::string_view text);

// V2 is identical to the kubelet's. V4 is read by every kubelet since 1.18. V1 can be written too,
// if it can hold the content.
std::string encode_checkpoint(const CpuCheckpoint& checkpoint, CheckpointVersion version);

// Migrates V1 to the newest version: replaces each container id by its pod and container. Ids
// missing in `containers` are returned with the checkpoint; the kubelet refuses to start because of
// one.
using ContainerRefs = std::map<std::string, std::pair<std::string, std::string>, std::less<>>;
struct MigratedCheckpoint {
  CpuCheckpoint checkpoint;
  std::vector<std::string> unknown;
};
MigratedCheckpoint migrate_checkpoint(CpuCheckpoint checkpoint, const ContainerRefs& containers);

// --- the checksum, for tests --------------------------------------

std::uint32_t fnv1a_32(std::string_view text);

// The text the kubelet hashes: go-spew's rendering of the Go structure.
std::string checkpoint_hash_input(const CpuCheckpoint& checkpoint, CheckpointVersion version);

// CpuStateFile: the kubelet's cpu_manager_state on disk: which container has which CPUs, kept
// across a crash. CheckpointFile: what it has in common with memory_manager_state.

class CheckpointFile {
 public:
  explicit CheckpointFile(std::filesystem::path path, AtStep at = nullptr)
      : path_(std::move(path)), at_(std::move(at)) {}

  // Renames a damaged file to NAME.damaged, so that nothing is lost.
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

  // Reads a file of any kubelet version. Absent: there is no file. Error: the file could not be
  // read or is damaged; it stays where it is.
  Result<std::optional<CpuCheckpoint>> load() const;

  // Writes the form that every kubelet since 1.18 reads, if the content has changed.
  Result<> save(const std::string& policy, const CpuState& state);
};

}  // namespace headroom::act
