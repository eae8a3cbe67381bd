// SPDX-License-Identifier: Apache-2.0
#include "act/cpus/cpuset_units.h"

#include "base/log/journal.h"

namespace headroom::act {

CpusetUnitsFile cpuset_units_file(const std::filesystem::path& state_dir) {
  return CpusetUnitsFile(state_dir / "cpuset-units.json");
}

const std::set<std::string>& CpusetUnits::paths() {
  if (loaded_) return paths_;
  loaded_ = true;
  if (const auto former = file_.load())
    paths_.insert(former->begin(), former->end());
  else
    log::error("{}: settings of units that have stopped since may stay", former.error().what);
  return paths_;
}

Result<> CpusetUnits::save() const {
  return file_.save({paths_.begin(), paths_.end()});
}

Result<> CpusetUnits::add(const std::vector<std::string>& paths) {
  std::set<std::string> before = this->paths();
  paths_.insert(paths.begin(), paths.end());
  if (paths_.size() == before.size()) return {};
  auto saved = save();
  if (!saved) paths_ = std::move(before);
  return saved;
}

void CpusetUnits::remove(const std::vector<std::string>& paths) {
  const std::size_t before = this->paths().size();
  for (const std::string& path : paths)
    paths_.erase(path);
  if (paths_.size() != before) (void)save();
}

}  // namespace headroom::act
