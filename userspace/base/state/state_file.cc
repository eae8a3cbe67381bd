// SPDX-License-Identifier: Apache-2.0
#include "base/state/state_file.h"

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "base/state/json_integer.h"

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

// Computed over the value without white space and with sorted keys, as nlohmann::json is written.
std::uint32_t checksum_of(const nlohmann::json& value) {
  return crc32c(to_json_text(value));
}

}  // namespace

StateDocument::StateDocument(fs::path path) : path_(std::move(path)), boot_id_(read_boot_id()) {}

Result<> StateDocument::save(const nlohmann::json& value) const {
  const nlohmann::json whole{{"version", kVersion},
                             {"boot_id", boot_id_},
                             {"crc32c", checksum_of(value)},
                             {"value", value}};
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
      if (const auto version = integer_of<int>(whole.at("version")); version != kVersion)
        return tl::make_unexpected(damaged("version " + std::to_string(version) + " is unknown"));
      const nlohmann::json& value = whole.at("value");
      if (whole.at("crc32c") != checksum_of(value))
        return tl::make_unexpected(damaged("the checksum is wrong"));
      valid = decode(value, Format::kCurrent);
    }
    if (valid) return {};
    return tl::make_unexpected(damaged("a value is out of range"));
  } catch (const nlohmann::json::exception& thrown) {
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
