// SPDX-License-Identifier: Apache-2.0
// FakeCgroupfs: a cgroup tree of plain files, written from one nested literal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace headroom::test {

struct FakeCgroup {
  std::string name;
  std::map<std::string, std::string> files;
  std::vector<FakeCgroup> children;
  bool bare = false;  // without even cgroup.procs: no cgroup at all
};

class FakeCgroupfs {
 public:
  explicit FakeCgroupfs(const FakeCgroup& root);
  ~FakeCgroupfs();
  FakeCgroupfs(const FakeCgroupfs&) = delete;
  FakeCgroupfs& operator=(const FakeCgroupfs&) = delete;

  const std::filesystem::path& root() const { return root_; }
  // Paths below are relative to the root; "" is the root itself.
  void write(const std::string& cgroup, const std::string& file, const std::string& text);
  void add(const std::string& parent, const FakeCgroup& cgroup);
  void remove(const std::string& cgroup);
  std::uint64_t id(const std::string& cgroup) const;

 private:
  std::filesystem::path root_;
};

// A cgroup with every file a leaf has, at values that tell the fields apart.
FakeCgroup full_cgroup(const std::string& name);

}  // namespace headroom::test
