// SPDX-License-Identifier: Apache-2.0
#include "observe/node/project_quota.h"

#include "base/mountinfo.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace headroom::observe {
namespace {

bool is_below(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

// Also where one of the words is "prjquota": what ext4 and XFS write.
bool counts_projects(const std::string& options) {
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');)
    if (word == "prjquota" || word == "pquota") return true;
  return false;
}

}  // namespace

Result<bool> has_project_quota(const std::filesystem::path& path,
                               const std::filesystem::path& mountinfo) {
  std::ifstream lines(mountinfo);
  std::string longest, options;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line);
    const std::vector<std::string> word{std::istream_iterator<std::string>(text), {}};
    const auto dash = std::find(word.begin(), word.end(), "-");
    if (dash - word.begin() < 6 || word.end() - dash < 4) continue;
    const std::string point = unescaped_mount(word[4]);
    // Of equals the later: it is mounted over the earlier.
    if (!is_below(path, point) || point.size() < longest.size()) continue;
    longest = point;
    options = dash[3];
  }
  if (longest.empty()) return failure("find the filesystem of " + path.string());
  return counts_projects(options);
}

}  // namespace headroom::observe
