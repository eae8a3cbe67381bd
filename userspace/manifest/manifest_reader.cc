// SPDX-License-Identifier: Apache-2.0
#include "manifest/manifest_reader.h"

#include "config/yaml/yaml.h"
#include "manifest/pod_fields.h"

#include <algorithm>
#include <map>
#include <utility>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;
using config::Diagnostic;
using config::Diagnostics;
using config::Int32;
using config::Section;

// An error may quote what was found.
void shorten(std::string& text) {
  if (text.size() <= kMaxErrorBytes) return;
  std::size_t end = kMaxErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // not within a character
  text.resize(end);
  text += "...";
  text.shrink_to_fit();
}

// Drops the errors after the first `count`, and says how many these were.
void keep_first(Diagnostics& errors, std::size_t count) {
  if (errors.size() <= count) return;
  const std::size_t dropped = errors.size() - count;
  errors.resize(count);
  errors.push_back({errors.back().file, 0, "and " + std::to_string(dropped) + " more"});
}

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
    if (!read) return add_error(path.string(), 0, read.error().what);
    bytes_ = read->size();
    text(*read, path.string());
  }

  ParsedFile take(std::size_t max_errors) {
    keep_first(complaints_, max_errors);
    for (Diagnostic& complaint : complaints_)
      shorten(complaint.what);
    return {std::move(found_), std::move(complaints_), std::move(containers_), options_.of_kubelet,
            bytes_};
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
    const std::size_t end = std::min(complaints_.size(), before + kMaxFileErrors);
    for (std::size_t i = before; i < end; ++i) {
      shorten(complaints_[i].what);
      pod.ignored_fields.push_back(complaints_[i].what);
    }
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
  std::size_t read_ = 0;   // pods, good or not
  std::size_t bytes_ = 0;  // of the file
  std::vector<ParsedFile::ParsedPod> found_;
  Diagnostics complaints_;
  ContainerIds containers_;
};

Diagnostic duplicate(const ParsedFile::ParsedPod& found, const ParsedFile::ParsedPod& earlier) {
  return {found.file, found.line,
          "pod " + found.pod.pod_namespace + "/" + found.pod.name + ": duplicate uid " +
              found.pod.uid + ", it is already at " + earlier.file + ":" +
              std::to_string(earlier.line)};
}

Diagnostic surplus(const ParsedFile::ParsedPod& found) {
  return {found.file, found.line,
          "pod " + found.pod.pod_namespace + "/" + found.pod.name +
              " and those after it are left out: more than " + std::to_string(kMaxPods) + " pods"};
}

}  // namespace

ParsedFile parse_manifest_file(const fs::path& file, const ManifestOptions& options) {
  ManifestParser reading(options);
  reading.file(file);
  return reading.take(kMaxFileErrors);
}

Manifests merge_files(std::vector<const ParsedFile*> parsed_files, std::size_t max_errors) {
  Manifests all;
  bool full = false;
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
      if (all.pods.size() == kMaxPods) {
        if (!std::exchange(full, true)) wrong.push_back(surplus(found));
        break;
      }
      all.pods.push_back(found.pod);
      if (parsed_file->of_kubelet) all.of_kubelet.insert(found.pod.uid);
    }
  }
  keep_first(all.diagnostics, max_errors);
  keep_first(all.kubelet_complaints, max_errors);
  return all;
}

Manifests parse_manifests(const std::string& text, const std::string& file,
                          ManifestOptions options) {
  ManifestParser reading(options);
  reading.text(text, file);
  // Limited once, with the errors that merging finds: so their number is all that is left out.
  const ParsedFile parsed_file = reading.take(SIZE_MAX);
  return merge_files({&parsed_file}, kMaxFileErrors);
}

}  // namespace headroom::observe
