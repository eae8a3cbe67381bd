// SPDX-License-Identifier: Apache-2.0
#include "manifest/volume_parser.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace headroom::observe {
namespace {

using config::Section;

void read_empty_dir(const Section& section, Volume& volume) {
  volume.kind = Volume::Kind::kEmptyDir;
  const auto empty_dir = section.map("emptyDir");
  if (!empty_dir) return;
  if (const auto medium = empty_dir->string("medium")) {
    volume.in_memory = !medium->empty();
    if (!medium->empty() && *medium != "Memory" && !medium->starts_with("HugePages"))
      empty_dir->add_error("medium", "expected Memory or HugePages, found \"" + *medium + "\"");
  }
  const auto limit = empty_dir->quantity("sizeLimit");
  if (limit && limit->sign() < 0)
    empty_dir->add_error("sizeLimit", "must not be negative, found " + limit->canonical());
  else
    volume.size_limit = limit;
}

void read_host_path(const Section& section, Volume& volume) {
  volume.kind = Volume::Kind::kHostPath;
  const auto host_path = section.map("hostPath");
  if (!host_path) return;
  const auto path = host_path->string("path");
  if (!path || path->empty())
    host_path->add_error_at(host_path->line_of("path"), "missing " + host_path->path_of("path"));
  else if (!path->starts_with("/"))
    host_path->add_error("path", "expected an absolute path, found \"" + *path + "\"");
  else
    volume.host_path = *path;
}

// The API server makes such a volume an emptyDir.
bool names_no_source(const Section& section) {
  const auto entries = section.entries();
  return std::all_of(entries.begin(), entries.end(), [](const config::yaml::Entry& entry) {
    return entry.key == "name" || entry.value.is_null();
  });
}

Volume read_volume(const Section& section) {
  Volume volume;
  const auto name = section.string("name");
  if (!name || name->empty())
    section.add_error_at(section.line_of("name"), "missing " + section.path_of("name"));
  else if (*name == "." || *name == ".." || name->find('/') != std::string::npos)
    section.add_error("name", "expected a name that could be a file's, found \"" + *name + "\"");
  else
    volume.name = *name;
  if (section.has("emptyDir"))
    read_empty_dir(section, volume);
  else if (section.has("hostPath"))
    read_host_path(section, volume);
  else if (section.has("configMap"))
    volume.kind = Volume::Kind::kConfigMap;
  else if (section.has("gitRepo"))
    volume.kind = Volume::Kind::kGitRepo;
  else if (names_no_source(section))
    volume.kind = Volume::Kind::kEmptyDir;
  return volume;
}

}  // namespace

std::vector<Volume> read_volumes(const Section& spec) {
  std::vector<Volume> volumes;
  const auto sections = spec.list_of_maps("volumes");
  if (!sections) return volumes;
  std::set<std::string> names;
  for (const Section& section : *sections) {
    Volume volume = read_volume(section);
    if (!volume.name.empty() && !names.insert(volume.name).second)
      section.add_error("name", "duplicate volume " + volume.name);
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

}  // namespace headroom::observe
