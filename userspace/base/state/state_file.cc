// SPDX-License-Identifier: Apache-2.0
#include "base/state/state_file.h"

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "base/state/checked_json.h"

#include <cerrno>
#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::state {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 2;  // 1: release 0.1, which did not write it

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

StateDocument::StateDocument(fs::path path) : path_(std::move(path)), boot_id_(read_boot_id()) {}

Result<> StateDocument::save(const nlohmann::json& value) const {
  nlohmann::json whole = checked_json(kVersion, value);
  whole["boot_id"] = boot_id_;
  return write_atomically(path_, to_json_text(whole, 1) + "\n");
}

Result<> StateDocument::remove() const {
  std::error_code error;
  fs::remove(path_, error);
  if (error) return errno_failure("remove " + path_.string(), error.value());
  return {};
}

bool StateDocument::exists() const {
  std::error_code unknown;
  return fs::exists(path_, unknown);
}

Error StateDocument::damaged(const std::string& why) const {
  return {"read " + path_.string() + ": " + why, 0};
}

// An error with an errno: the file cannot be opened. Any other error: it is damaged.
Result<> StateDocument::read(const Decode& decode) const {
  errno = 0;
  std::ifstream file(path_);
  if (!file && errno != 0 && errno != ENOENT) return errno_failure("open " + path_.string(), errno);
  if (!file) return {};
  try {
    const nlohmann::json whole = nlohmann::json::parse(file);
    if (whole.at("boot_id") != boot_id_) return {};
    bool valid = false;
    if (!whole.contains("version")) {
      if (!has_integers_only(whole)) return tl::make_unexpected(damaged("a number is no integer"));
      valid = decode(whole, Format::kUnversioned);
    } else {
      const auto value = checked_value(whole, kVersion);
      if (!value) return tl::make_unexpected(damaged(value.error().what));
      valid = decode(*value, Format::kCurrent);
    }
    if (valid) return {};
    return tl::make_unexpected(damaged("a value is out of range"));
  } catch (const nlohmann::json::exception& thrown) {
    return tl::make_unexpected(damaged(thrown.what()));
  } catch (const std::ios_base::failure& thrown) {  // a directory
    return tl::make_unexpected(damaged(thrown.what()));
  }
}

Result<> StateDocument::load(const Decode& decode) const {
  auto read_document = read(decode);
  if (read_document || read_document.error().code != 0) return read_document;
  std::error_code ignored;
  fs::rename(path_, path_.string() + ".damaged", ignored);
  return failure(read_document.error().what + "; set aside as .damaged");
}

}  // namespace headroom::state
