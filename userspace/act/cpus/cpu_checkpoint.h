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

// Go values as the text that the kubelet's checksums are of: go-spew's rendering, keys sorted.

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

// Which kubelets write it, and what is new in it.
enum class CheckpointVersion : std::uint8_t {
  kV1,  // to 1.17: by container id instead of pod and name
  kV2,  // 1.18 and later
  kV3,  // 1.36 with PodLevelResourceManagers: podEntries
  kV4,  // newest: the fields of V3 for older readers, unchecked, and the whole as checked text
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
    kNotACheckpoint,  // not JSON, or of another shape
    kCorrupt,         // its checksum is another one
    kBadCpuSet,
  };
  Kind kind;
  std::string what;
};

// Any version. A checksum of 0 is not verified, as upstream; V4's always is.
tl::expected<CpuCheckpoint, CheckpointError> decode_checkpoint(std::string_view text);

// V2 is byte for byte the kubelet's. V4 is read by every kubelet since 1.18. V1 is written too, for
// what it can hold.
std::string encode_checkpoint(const CpuCheckpoint& checkpoint, CheckpointVersion version);

// V1 to the newest: the pod and container of each id. Ids missing in `containers` are returned
// beside the checkpoint; the kubelet refuses to start because of one.
using ContainerRefs = std::map<std::string, std::pair<std::string, std::string>, std::less<>>;
struct MigratedCheckpoint {
  CpuCheckpoint checkpoint;
  std::vector<std::string> unknown;
};
MigratedCheckpoint migrate_checkpoint(CpuCheckpoint checkpoint, const ContainerRefs& containers);

// --- the checksum, for tests and tools that compare it --------------------------------------

std::uint32_t fnv1a_32(std::string_view text);

// The text the kubelet hashes: go-spew's rendering of the Go structure.
std::string checkpoint_hash_input(const CpuCheckpoint& checkpoint, CheckpointVersion version);

// CpuStateFile: the kubelet's cpu_manager_state on disk: which container has which CPUs, kept
// across a crash. CheckpointFile: what it has in common with memory_manager_state.

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
