// SPDX-License-Identifier: Apache-2.0
// StateFile: one value in one file, for the next start of the daemon in the same boot. The file has
// its version, the boot id and the checksum of the value, and is replaced atomically.
//
// Times and cgroup ids are not valid in another boot: a value of another boot counts as absent.
#pragma once

#include "base/state/field_json.h"

#include <headroom/result.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::state {

// The part that does not depend on the type of the value.
class StateDocument {
 public:
  enum class Format : bool { kUnversioned, kCurrent };
  // False: the JSON is not a value of the type.
  using Decode = std::function<bool(const nlohmann::json& json, Format format)>;

  explicit StateDocument(std::filesystem::path path);

  Result<> save(const nlohmann::json& value) const;
  Result<> remove() const;
  // Calls `decode` with the value of a file of this boot.
  Result<> read(const Decode& decode) const;
  // As read(), but a damaged file, which is an error, is also renamed to NAME.damaged: it is kept,
  // and the next start does not fail because of it.
  Result<> load(const Decode& decode) const;
  bool exists() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  Error damaged(const std::string& why) const;

  const std::filesystem::path path_;
  const std::string boot_id_;
};

template <class T>
class StateFile {
 public:
  // Reads a file of release 0.1: it has no version, and each file has its own format. To be removed
  // in release 0.2.
  using DecodeUnversioned = bool (*)(const nlohmann::json& whole, T& value);

  explicit StateFile(std::filesystem::path path, DecodeUnversioned decode_unversioned = nullptr)
      : document_(std::move(path)), decode_unversioned_(decode_unversioned) {}

  // Removes the file if the value is an empty container.
  Result<> save(const T& value) const {
    if constexpr (requires { value.empty(); })
      if (value.empty()) return document_.remove();
    return document_.save(state::to_json(value));
  }
  bool exists() const { return document_.exists(); }
  const std::filesystem::path& path() const { return document_.path(); }
  // Returns a default value if there is no file or it is from another boot. A damaged file is an
  // error and is not renamed.
  Result<T> read() const {
    T value{};
    const auto read = document_.read(decode_into(value));
    if (!read) return tl::make_unexpected(read.error());
    return value;
  }
  // As read(), for the program that writes the file: a damaged file is renamed to NAME.damaged.
  Result<T> load() const {
    T value{};
    const auto loaded = document_.load(decode_into(value));
    if (!loaded) return tl::make_unexpected(loaded.error());
    return value;
  }

 private:
  StateDocument::Decode decode_into(T& value) const {
    return [this, &value](const nlohmann::json& json, StateDocument::Format format) {
      if (format == StateDocument::Format::kCurrent) return state::from_json(json, value);
      return decode_unversioned_ != nullptr && decode_unversioned_(json, value);
    };
  }

  StateDocument document_;
  DecodeUnversioned decode_unversioned_;
};

}  // namespace headroom::state
