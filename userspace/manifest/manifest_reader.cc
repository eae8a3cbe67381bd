// SPDX-License-Identifier: Apache-2.0
#include "manifest/manifest_reader.h"

#include "config/yaml/yaml.h"
#include "manifest/pod_fields.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <utility>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;
using config::Diagnostic;
using config::Diagnostics;
using config::Int32;
using config::Section;

// One reading, of one file.
class ManifestParser {
 public:
  explicit ManifestParser(ManifestOptions options) : options_(options) {}

  void text(const std::string& text, const std::string& file) {
    for (const config::yaml::Node& document : config::yaml::parse(text, file, complaints_)) {
      if (document.is_null()) continue;  // between two "---"
      if (document.is_map())
        object(Section(document, "", file, complaints_), file, false);
      else
        add_error(file, document.line, "expected a Pod, found " + describe(document));
    }
  }

  void file(const fs::path& path) {
    const auto read = config::read_file(path, kMaxManifestBytes);
    if (read)
      text(*read, path.string());
    else
      add_error(path.string(), 0, read.error().what);
  }

  ParsedFile take() {
    return {std::move(found_), std::move(complaints_), std::move(containers_), options_.of_kubelet};
  }

 private:
  // The items of a PodList need not say what they are.
  void object(const Section& section, const std::string& file, bool in_pod_list) {
    const auto kind = section.string("kind");
    if (!section.has("kind") && in_pod_list) return pod(section, file);
    if (!section.has("kind"))
      return section.add_error_at(section.line(), "missing kind: expected Pod");
    if (!kind) return;  // complained of
    if (!version_is_v1(section, *kind)) return;
    if (*kind == "Pod") return pod(section, file);
    if (*kind == "List" || *kind == "PodList") return list(section, file, *kind == "PodList");
    section.add_error_at(section.line_of("kind"), "kind " + *kind + ": expected Pod");
  }

  static bool version_is_v1(const Section& section, const std::string& kind) {
    const bool ours = kind == "Pod" || kind == "List" || kind == "PodList";
    if (!ours) return true;  // the kind is the trouble then
    if (!section.has("apiVersion")) {
      section.add_error_at(section.line(), "missing apiVersion: expected v1");
      return false;
    }
    const auto version = section.string("apiVersion");
    if (version && *version != "v1")
      section.add_error("apiVersion", "expected v1, found \"" + *version + "\"");
    return version == "v1";
  }

  void list(const Section& section, const std::string& file, bool of_pods) {
    const auto items = section.list_of_maps("items");
    if (!items) return;
    for (const Section& item : *items)
      object(item, file, of_pods);
  }

  void pod(const Section& section, const std::string& file) {
    if (read_++ >= options_.max_pods) {
      if (read_ == options_.max_pods + 1)
        add_error(file, section.line(), "more than " + std::to_string(options_.max_pods) + " pods");
      return;
    }
    const std::size_t before = complaints_.size();
    Pod pod = read_pod(section);
    if (has_ended(section)) return;
    if (options_.all_static) pod.is_static = true;
    const bool good = complaints_.size() == before;
    if (!good && !(options_.of_kubelet && says_its_rank(section))) return;
    for (std::size_t i = before; i < complaints_.size(); ++i)
      pod.ignored_fields.push_back(complaints_[i].what);
    keep(section, std::move(pod), file);
  }

  // Whether what names the pod and its priority could be read. Its complaints were made already.
  bool says_its_rank(const Section& section) {
    const std::size_t before = complaints_.size();
    const auto metadata = section.map("metadata");
    const auto spec = section.map("spec");
    const auto has_text = [](const Section& of, std::string_view key) {
      const auto text = of.string(key);
      return text && !text->empty();
    };
    const bool readable =
        metadata && has_text(*metadata, "name") && has_text(*metadata, "uid") && spec &&
        (!spec->has("priority") || spec->integer("priority", Int32::min(), Int32::max())) &&
        (!spec->has("priorityClassName") || spec->string("priorityClassName"));
    complaints_.resize(before);
    return readable;
  }

  void keep(const Section& section, Pod pod, const std::string& file) {
    containers_.merge(container_ids(section, pod));
    // The kubelet runs its pods' commands through the runtime, with the containers' own privileges.
    if (options_.of_kubelet)
      for (Container& container : pod.containers)
        container.pre_stop.clear();
    found_.push_back({std::move(pod), file, section.line()});
  }

  void add_error(const std::string& file, int line, std::string what) {
    complaints_.push_back({file, line, std::move(what)});
  }

  ManifestOptions options_;
  std::size_t read_ = 0;  // pods, good or not
  std::vector<ParsedFile::ParsedPod> found_;
  Diagnostics complaints_;
  ContainerIds containers_;
};

bool is_manifest(const fs::path& path) {
  const std::string name = path.filename();
  const fs::path extension = path.extension();
  return !name.starts_with(".") &&
         (extension == ".yaml" || extension == ".yml" || extension == ".json");
}

Diagnostic duplicate(const ParsedFile::ParsedPod& found, const ParsedFile::ParsedPod& earlier) {
  return {found.file, found.line,
          "pod " + found.pod.pod_namespace + "/" + found.pod.name + ": duplicate uid " +
              found.pod.uid + ", it is already at " + earlier.file + ":" +
              std::to_string(earlier.line)};
}

}  // namespace

ParsedFile parse_manifest_file(const fs::path& file, const ManifestOptions& options) {
  ManifestParser reading(options);
  reading.file(file);
  return reading.take();
}

Manifests merge_files(std::vector<const ParsedFile*> parsed_files) {
  Manifests all;
  std::map<std::string_view, const ParsedFile::ParsedPod*> by_uid;
  for (const ParsedFile* parsed_file : parsed_files) {
    Diagnostics& wrong = parsed_file->of_kubelet ? all.kubelet_complaints : all.diagnostics;
    wrong.insert(wrong.end(), parsed_file->diagnostics.begin(), parsed_file->diagnostics.end());
    all.containers.insert(parsed_file->containers.begin(), parsed_file->containers.end());
    for (const ParsedFile::ParsedPod& found : parsed_file->found) {
      const auto [first, fresh] = by_uid.emplace(found.pod.uid, &found);
      if (!fresh) {
        wrong.push_back(duplicate(found, *first->second));
        continue;
      }
      all.pods.push_back(found.pod);
      if (parsed_file->of_kubelet) all.of_kubelet.insert(found.pod.uid);
    }
  }
  return all;
}

std::vector<fs::path> manifest_files(const fs::path& directory, Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (is_manifest(at->path())) files.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory)
    diagnostics.push_back({directory.string(), 0, error.message()});
  std::sort(files.begin(), files.end());
  return files;
}

Manifests parse_manifests(const std::string& text, const std::string& file,
                          ManifestOptions options) {
  ManifestParser reading(options);
  reading.text(text, file);
  const ParsedFile parsed_file = reading.take();
  return merge_files({&parsed_file});
}

Manifests read_manifests(const fs::path& directory, ManifestOptions options) {
  ParsedFile errors;
  std::vector<ParsedFile> parsed_files;
  for (const fs::path& file : manifest_files(directory, errors.diagnostics))
    parsed_files.push_back(parse_manifest_file(file, options));
  std::vector<const ParsedFile*> all{&errors};
  for (const ParsedFile& parsed_file : parsed_files)
    all.push_back(&parsed_file);
  return merge_files(std::move(all));
}

namespace {

// A user that can write a manifest decides which pod is evicted first, and a pre-stop command in it
// runs with the privileges of a container. "": only root can, or the user of this process.
// headroom-kube, whose files hold no commands, has a user of its own.
std::string writer_error(const fs::path& path, const ManifestOptions& options) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";  // it is not there, and is not read
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "writable by its group or by others, so it is not read: remove the permission with "
           "chmod go-w";
  if (options.of_kubelet || info.st_uid == 0 || info.st_uid == ::geteuid()) return "";
  return "owned by uid " + std::to_string(info.st_uid) +
         ", so it is not read: its owner must be "
         "root";
}

}  // namespace

ManifestCache::FileVersion ManifestCache::file_version(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
          info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

Manifests ManifestCache::read(std::span<const ManifestSource> places) {
  ParsedFile errors, kubelet_errors;
  kubelet_errors.of_kubelet = true;
  std::vector<const ParsedFile*> parsed_files;
  for (auto& [path, cached] : files_)
    cached.seen = false;
  const auto only_root_writes = [&](const fs::path& path, const ManifestOptions& options) {
    std::string error = writer_error(path, options);
    if (error.empty()) return true;
    (options.of_kubelet ? kubelet_errors : errors)
        .diagnostics.push_back({path.string(), 0, std::move(error)});
    return false;
  };
  for (const ManifestSource& place : places) {
    if (!only_root_writes(place.directory, place.options)) continue;
    for (const fs::path& file : manifest_files(place.directory, errors.diagnostics)) {
      if (!only_root_writes(file, place.options)) continue;
      // Before it is read: one that is written while we do is read again.
      const FileVersion version = file_version(file);
      CachedFile& cached = files_[file.native()];
      if (cached.version != version)
        cached = {version, parse_manifest_file(file, place.options), false};
      cached.seen = true;
      parsed_files.push_back(&cached.parsed_file);
    }
  }
  parsed_files.push_back(&errors);
  parsed_files.push_back(&kubelet_errors);
  Manifests manifests = merge_files(std::move(parsed_files));
  std::erase_if(files_, [](const auto& each) { return !each.second.seen; });
  return manifests;
}

}  // namespace headroom::observe
