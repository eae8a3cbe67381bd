// SPDX-License-Identifier: Apache-2.0
// TempDir: a directory of a test's own under $TMPDIR, removed with what is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace headroom::test {

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "headroom-test-XXXXXX";
    if (!::mkdtemp(name.data())) ADD_FAILURE() << "mkdtemp " << name;
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom::test
