// SPDX-License-Identifier: Apache-2.0
#include "act/cpus/cpu_partition.h"

#include "base/file_io.h"

#include <fstream>

namespace headroom::act {
namespace {

std::string line_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

std::string CpuPartition::state(const std::string& path) const {
  return line_of(file(path, "partition"));
}

CpuSet CpuPartition::exclusive(const std::string& path) const {
  return CpuSet::parse(line_of(file(path, "exclusive"))).value_or(CpuSet());
}

Result<> CpuPartition::delegate_exclusive(const std::string& path, const CpuSet& cpus) const {
  const std::string exclusive_file = file(path, "exclusive");
  if (::access(exclusive_file.c_str(), F_OK) != 0 || exclusive(path) == cpus) return {};
  return write_file_value(exclusive_file, cpus.format() + "\n");
}

Result<> CpuPartition::isolate(const std::string& path, const CpuSet& cpus) const {
  Result<> done = delegate_exclusive(path, cpus);
  if (done) done = write_file_value(file(path, "partition"), "isolated\n");
  const std::string state_after = state(path);
  if (done && state_after == "isolated") return done;
  if (done) done = failure(state_after);
  if (auto back = make_member(path); !back) done.error().what += "; " + back.error().what;
  return done;
}

Result<> CpuPartition::make_member(const std::string& path) const {
  if (state(path).empty()) return {};
  if (auto done = write_file_value(file(path, "partition"), "member\n"); !done) return done;
  return delegate_exclusive(path, {});
}

}  // namespace headroom::act
