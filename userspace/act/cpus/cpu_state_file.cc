// SPDX-License-Identifier: Apache-2.0
#include "act/cpus/cpu_state_file.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace headroom::act {

Result<std::optional<std::string>> CheckpointFile::read() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return errno_failure("open " + path_.string(), errno);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return errno_failure("read " + path_.string(), errno);
  return text;
}

Result<> CheckpointFile::move_damaged_file() const {
  const std::string damaged_path = path_.string() + ".damaged";
  if (std::rename(path_.c_str(), damaged_path.c_str()) == 0) return {};
  return errno_failure("rename " + path_.string() + " to " + damaged_path, errno);
}

Result<> CheckpointFile::write(std::string text) {
  if (text == written_) return {};
  constexpr mode_t kOwner = 0600;
  if (auto saved = write_atomically(
          path_, text, {.mode = kOwner, .durable = true, .make_directory = true, .at = at_});
      !saved)
    return saved;
  written_ = std::move(text);
  return {};
}

Result<std::optional<CpuCheckpoint>> CpuStateFile::load() const {
  const auto text = read();
  if (!text) return tl::make_unexpected(text.error());
  if (!*text) return std::nullopt;
  auto checkpoint = decode_checkpoint(**text);
  if (!checkpoint) return failure("read " + path().string() + ": " + checkpoint.error().what);
  return std::move(*checkpoint);
}

Result<> CpuStateFile::save(const std::string& policy, const CpuState& state) {
  // V2 has no place for CPUs of pods as a whole.
  const auto version = state.pod_entries.empty() ? CheckpointVersion::kV2 : CheckpointVersion::kV4;
  return write(encode_checkpoint({.policy = policy, .state = state}, version));
}

}  // namespace headroom::act
