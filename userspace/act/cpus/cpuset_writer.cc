// SPDX-License-Identifier: Apache-2.0
#include "act/cpus/cpuset_writer.h"

#include "base/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

namespace headroom::act {
namespace {

constexpr const char* kExclusive = "cpuset.cpus.exclusive";
constexpr const char* kPartition = "cpuset.cpus.partition";
// systemd answers before it writes. At most half a second.
constexpr int kMaxPauses = 100;
constexpr std::chrono::milliseconds kPause{5};

std::string line_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

Result<> set_exclusive(int directory, const CpuSet& cpus) {
  const bool has_file = ::faccessat(directory, kExclusive, F_OK, 0) == 0;
  if (!has_file || CpuSet::parse(line_at(directory, kExclusive)).value_or(CpuSet()) == cpus)
    return {};
  return write_setting_at(directory, kExclusive, cpus.format() + "\n");
}

Result<> end_partition(int directory) {
  if (line_at(directory, kPartition).empty()) return {};
  if (auto done = write_setting_at(directory, kPartition, "member\n"); !done) return done;
  return set_exclusive(directory, {});
}

}  // namespace

std::string CpuPartition::state(const std::string& path) const {
  return line_of(cgroup_root_.native() + path + "/" + kPartition);
}

CpuSet CpuPartition::exclusive(const std::string& path) const {
  return CpuSet::parse(line_of(cgroup_root_.native() + path + "/" + kExclusive)).value_or(CpuSet());
}

Result<> CpuPartition::delegate_exclusive(const SeenCgroup& cgroup, const CpuSet& cpus) const {
  const auto directory = open_seen_cgroup(cgroup_root_, cgroup);
  return directory ? set_exclusive(directory->get(), cpus) : Result<>{};
}

Result<> CpuPartition::isolate(const SeenCgroup& cgroup, const CpuSet& cpus) const {
  const auto directory = open_seen_cgroup(cgroup_root_, cgroup);
  if (!directory) return tl::make_unexpected(directory.error());
  Result<> done = set_exclusive(directory->get(), cpus);
  if (done) done = write_setting_at(directory->get(), kPartition, "isolated\n");
  const std::string state_after = line_at(directory->get(), kPartition);
  if (done && state_after == "isolated") return done;
  if (done) done = failure(state_after);
  if (auto back = end_partition(directory->get()); !back)
    done.error().what += "; " + back.error().what;
  return done;
}

Result<> CpuPartition::make_member(const SeenCgroup& cgroup) const {
  const auto directory = open_seen_cgroup(cgroup_root_, cgroup);
  return directory ? end_partition(directory->get()) : Result<>{};
}

namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool all_slices(std::string_view path) {
  while (!path.empty() && path != "/") {
    if (!path.ends_with(".slice")) return false;
    path = path.substr(0, path.rfind('/'));
  }
  return true;
}

}  // namespace

std::optional<std::string> unit_of(std::string_view path) {
  std::string_view name = base_name(path);
  const bool unit =
      name.ends_with(".slice") || name.ends_with(".service") || name.ends_with(".scope");
  if (!unit || !all_slices(path.substr(0, path.rfind('/')))) return std::nullopt;
  // systemd escapes a name that would clash with a file of the cgroup by this prefix.
  if (name.starts_with('_')) name.remove_prefix(1);
  return std::string(name);
}

std::vector<std::uint8_t> as_bitmap(const CpuSet& cpus) {
  std::vector<std::uint8_t> bits;
  for (const Cpu cpu : cpus) {
    const auto byte = static_cast<std::size_t>(cpu / 8);
    if (bits.size() <= byte) bits.resize(byte + 1);
    bits[byte] = static_cast<std::uint8_t>(bits[byte] | 1U << (cpu % 8));
  }
  return bits;
}

namespace {

// Children have the files of cpuset only if each cgroup above enables the controller for its
// children. `directory` is the cgroup's at `path`.
Result<> enable_cpuset_above(int directory, const std::string& path) {
  std::vector<Fd> above;  // the nearest first
  for (auto levels = std::ranges::count(path, '/'); levels > 0; --levels) {
    const int below = above.empty() ? directory : above.back().get();
    above.emplace_back(::openat(below, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!above.back()) return errno_failure("open the cgroup above " + path, errno);
  }
  for (auto each = above.rbegin(); each != above.rend(); ++each)
    if (auto on = write_setting_at(each->get(), "cgroup.subtree_control", "+cpuset"); !on)
      return on;
  return {};
}

Result<> write_file(const Fd& directory, const std::string& path, const char* file,
                    const CpuSet& set) {
  if (::faccessat(directory.get(), file, F_OK, 0) != 0)
    if (auto on = enable_cpuset_above(directory.get(), path); !on) return on;
  return write_setting_at(directory.get(), file, set.format() + "\n");
}

}  // namespace

Result<> CpusetWriter::write(const SeenCgroup& cgroup, const Setting& setting, const CpuSet& set) {
  const auto directory = open_seen_cgroup(cgroup_root_, cgroup);
  if (!directory) return tl::make_unexpected(directory.error());
  if (set.size() == 0) return remove_limit(*directory, cgroup.path, setting);
  if (const auto unit = unit_of(cgroup.path)) return set_property(*unit, setting, set);
  return write_file(*directory, cgroup.path, setting.file, set);
}

Result<> CpusetWriter::set_property(const std::string& unit, const Setting& setting,
                                    const CpuSet& set) {
  return properties_.set(unit, {{.name = setting.property, .value = as_bitmap(set)}});
}

// An empty set is no limit. Where there are processes Linux 6.1 and 6.12 refuse it with ENOSPC
// (validate_change() in kernel/cgroup/cpuset.c; 7.2 does not), and the old limit would stay: all
// that the machine has is written first, and stays there.
Result<> CpusetWriter::remove_limit(const Fd& directory, const std::string& path,
                                    const Setting& setting) {
  const CpuSet all =
      CpuSet::parse(line_of(cgroup_root_.native() + "/" + setting.effective)).value_or(CpuSet());
  const auto unit = unit_of(path);
  if (!unit) {
    auto done = write_file(directory, path, setting.file, {});
    if (!done && done.error().code == ENOSPC) done = write_file(directory, path, setting.file, all);
    return done;
  }
  const auto is_limited = [&] {
    const auto own = CpuSet::parse(line_at(directory.get(), setting.file));
    return own && own->size() > 0 && *own != all;
  };
  if (is_limited()) {
    if (auto done = set_property(*unit, setting, all); !done) return done;
    // Two settings in a row would be one write, that of the second.
    for (int i = 0; i < kMaxPauses && is_limited(); ++i)
      std::this_thread::sleep_for(kPause);
  }
  auto done = set_property(*unit, setting, {});
  // No limit is what there is without a setting of ours.
  if (done) done = properties_.remove(*unit, {setting.property});
  return done;
}

Result<> CpusetWriter::write_nodes(const SeenCgroup& cgroup, NodeSet nodes) {
  CpuSet set;
  for (const int node : nodes.ids())
    set.insert(node);
  return write(cgroup, kNodes, set);
}

bool CpusetWriter::remove_settings(const std::string& path) {
  const auto unit = unit_of(path);
  if (!unit) return true;
  if (!properties_.finish_earlier_calls()) return false;
  UnitProperties none;
  for (const Setting& setting : {kCpus, kNodes})
    if (properties_.setting(*unit, setting.property))
      none.push_back({.name = setting.property, .value = as_bitmap({})});
  if (!none.empty() && !properties_.set_if_loaded(*unit, none)) return false;
  return properties_.remove(*unit, {kCpus.property, kNodes.property}).has_value();
}

}  // namespace headroom::act
