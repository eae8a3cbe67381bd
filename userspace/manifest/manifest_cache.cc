// SPDX-License-Identifier: Apache-2.0
#include "manifest/manifest_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;
using config::Diagnostics;

bool is_manifest(const fs::path& path) {
  const std::string name = path.filename();
  const fs::path extension = path.extension();
  return !name.starts_with(".") &&
         (extension == ".yaml" || extension == ".yml" || extension == ".json");
}

// By name; a directory that is not there has none.
std::set<fs::path> manifest_files(const fs::path& directory, Diagnostics& errors) {
  std::error_code error;
  std::set<fs::path> files;
  std::size_t found = 0;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (!is_manifest(at->path())) continue;
    ++found;
    files.insert(at->path());
    if (files.size() > kMaxDirectoryFiles) files.erase(std::prev(files.end()));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    errors.push_back({directory.string(), 0, error.message()});
  if (found > files.size())
    errors.push_back({directory.string(), 0,
                      std::to_string(found) + " manifests: those after the first " +
                          std::to_string(files.size()) + " are not read"});
  return files;
}

// Since it was listed. A link to nothing is there.
bool was_removed(const fs::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) != 0 && errno == ENOENT;
}

// A user that can write a manifest decides which pod is evicted first, and a pre-stop command in it
// runs with the privileges of a container. "": only root can, or the user of this process.
// headroom-kube, whose files hold no commands, has a user of its own.
std::string writer_error(const fs::path& path, const ManifestOptions& options) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";  // it is not there, and is not read
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "";  // nor is that
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "writable by its group or by others, so it is not read: remove the permission with "
           "chmod go-w";
  if (options.of_kubelet || info.st_uid == 0 || info.st_uid == ::geteuid()) return "";
  return "owned by uid " + std::to_string(info.st_uid) +
         ", so it is not read: its owner must be root";
}

bool only_root_writes(const fs::path& path, const ManifestOptions& options, Diagnostics& errors) {
  std::string error = writer_error(path, options);
  if (error.empty()) return true;
  errors.push_back({path.string(), 0, std::move(error)});
  return false;
}

}  // namespace

ManifestCache::FileVersion ManifestCache::file_version(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

ManifestCache::CachedFile& ManifestCache::read_if_changed(const fs::path& file,
                                                          const ManifestOptions& options) {
  // Before it is read: one that is written while we do is read again.
  const FileVersion version = file_version(file);
  CachedFile& cached = files_[file.native()];
  if (cached.version != version) cached = {version, parse_manifest_file(file, options), false};
  return cached;
}

void ManifestCache::read_directory(const ManifestSource& place, Diagnostics& errors,
                                   std::vector<const ParsedFile*>& parsed_files) {
  if (!only_root_writes(place.directory, place.options, errors)) return;
  std::size_t bytes = 0;
  for (const fs::path& file : manifest_files(place.directory, errors)) {
    if (was_removed(file) || !only_root_writes(file, place.options, errors)) continue;
    CachedFile& cached = read_if_changed(file, place.options);
    cached.seen = true;
    bytes += cached.parsed_file.bytes;
    if (bytes > kMaxDirectoryBytes) {
      errors.push_back({file.string(), 0,
                        "this manifest and those after it are not read: more than " +
                            std::to_string(kMaxDirectoryBytes >> 20) + " MiB in the directory"});
      return;
    }
    parsed_files.push_back(&cached.parsed_file);
  }
}

Manifests ManifestCache::read(std::span<const ManifestSource> places) {
  ParsedFile errors, kubelet_errors;
  kubelet_errors.of_kubelet = true;
  std::vector<const ParsedFile*> parsed_files;
  for (auto& [path, cached] : files_)
    cached.seen = false;
  for (const ManifestSource& place : places)
    read_directory(place, (place.options.of_kubelet ? kubelet_errors : errors).diagnostics,
                   parsed_files);
  parsed_files.push_back(&errors);
  parsed_files.push_back(&kubelet_errors);
  Manifests manifests = merge_files(std::move(parsed_files));
  std::erase_if(files_, [](const auto& each) { return !each.second.seen; });
  return manifests;
}

Manifests read_manifests(const fs::path& directory, ManifestOptions options) {
  const std::vector<ManifestSource> places{{directory, options}};
  return ManifestCache().read(places);
}

}  // namespace headroom::observe
