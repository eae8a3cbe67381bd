// SPDX-License-Identifier: Apache-2.0
#include "act/cpus/cpuset_writer.h"

#include "base/file_io.h"

#include <unistd.h>

#include <cerrno>
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

// Children have the file only if each cgroup above enables the controller for its children.
Result<> CpusetWriter::write_file(const std::string& path, const Setting& setting,
                                  const CpuSet& set) {
  const std::string root = cgroup_root_.native();
  const std::string file = root + path + "/" + setting.file;
  if (::access(file.c_str(), F_OK) != 0)
    for (std::size_t slash = 0; slash != std::string::npos; slash = path.find('/', slash + 1))
      if (auto on =
              write_file_value(root + path.substr(0, slash) + "/cgroup.subtree_control", "+cpuset");
          !on)
        return on;
  return write_file_value(file, set.format() + "\n");
}

Result<> CpusetWriter::write(const std::string& path, const Setting& setting, const CpuSet& set) {
  if (const auto unit = unit_of(path))
    return properties_.set(*unit, {{.name = setting.property, .value = as_bitmap(set)}});
  return write_file(path, setting, set);
}

Result<> CpusetWriter::write_nodes(const std::string& path, NodeSet nodes) {
  CpuSet set;
  for (const int node : nodes.ids())
    set.insert(node);
  return write(path, kNodes, set);
}

bool CpusetWriter::remove_drop_in(const std::string& path) {
  const auto unit = unit_of(path);
  return !unit || properties_.remove(*unit, {kCpus.property, kNodes.property});
}

}  // namespace headroom::act
