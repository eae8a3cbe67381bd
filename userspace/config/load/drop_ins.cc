// SPDX-License-Identifier: Apache-2.0
#include "config/load/drop_ins.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace headroom::config {
namespace {

constexpr std::array kRenamed{
    RenamedKey{"headroom.disk", "measureEvery", "measurePeriod"},
    RenamedKey{"headroom.ladder.squeeze", "longest", "maxDuration"},
    RenamedKey{"headroom.ladder.stuck", "after", "waitDuration"},
    RenamedKey{"headroom.ladder.stuck", "relaxFor", "relaxDuration"},
    RenamedKey{"headroom.reclaim", "memory", "memoryLimit"},
};

yaml::Entry* entry_of(yaml::Node& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const yaml::Entry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

// The map at a path of keys; null: the document has none.
yaml::Node* map_at(yaml::Node& document, std::string_view path) {
  yaml::Node* node = &document;
  while (node && !path.empty()) {
    const std::size_t dot = path.find('.');
    yaml::Entry* entry = entry_of(*node, path.substr(0, dot));
    node = entry ? &entry->value : nullptr;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node && node->is_map() ? node : nullptr;
}

}  // namespace

std::span<const RenamedKey> renamed_keys() {
  return kRenamed;
}

void rename_old_keys(yaml::Node& document, const std::string& file, Diagnostics& diagnostics,
                     std::vector<std::string>& warnings) {
  for (const RenamedKey& key : kRenamed) {
    yaml::Node* map = map_at(document, key.map);
    yaml::Entry* old = map ? entry_of(*map, key.old_name) : nullptr;
    if (!old) continue;
    const std::string path = std::string(key.map) + '.',
                      old_path = path + std::string(key.old_name),
                      new_path = path + std::string(key.new_name);
    if (entry_of(*map, key.new_name)) {
      diagnostics.push_back({file, old->line,
                             old_path + ": is the old name of " + new_path +
                                 ", which is set too; remove the old one"});
      std::erase_if(map->entries,
                    [&](const yaml::Entry& entry) { return entry.key == key.old_name; });
      continue;
    }
    warnings.push_back(file + ":" + std::to_string(old->line) + ": " + old_path +
                       " was renamed; write " + new_path);
    old->key = key.new_name;
  }
}

namespace {

constexpr std::string_view kKubeletSuffix = ".conf";
constexpr std::array<std::string_view, 3> kOwnSuffixes{".yaml", ".yml", ".json"};

void shift_lines(yaml::Node& node, int by) {
  node.line += by;
  for (yaml::Node& item : node.items)
    shift_lines(item, by);
  for (yaml::Entry& entry : node.entries) {
    entry.line += by;
    shift_lines(entry.value, by);
  }
}

void merge(yaml::Node& target, yaml::Node from) {
  if (!target.is_map() || !from.is_map()) {
    target = std::move(from);
    return;
  }
  for (yaml::Entry& entry : from.entries) {
    const auto same =
        std::find_if(target.entries.begin(), target.entries.end(),
                     [&](const yaml::Entry& other) { return other.key == entry.key; });
    if (same == target.entries.end()) {
      target.entries.push_back(std::move(entry));
      continue;
    }
    same->line = entry.line;
    merge(same->value, std::move(entry.value));
  }
}

std::optional<yaml::Node> read(const std::string& file, const std::string& text, bool drop_in,
                               Diagnostics& diagnostics) {
  std::vector<yaml::Node> documents = yaml::parse(text, file, diagnostics);
  std::erase_if(documents, [](const yaml::Node& node) { return node.is_null(); });
  if (documents.empty()) {
    // Cut short by a syntax error, it is not empty.
    if (diagnostics.empty() && !drop_in)
      diagnostics.push_back({file, 0, "expected a KubeletConfiguration, found an empty file"});
    return std::nullopt;
  }
  if (documents.size() > 1)
    diagnostics.push_back({file, documents[1].line, "expected one document, found another"});
  if (documents.front().is_map()) return std::move(documents.front());
  diagnostics.push_back({file, documents.front().line,
                         "expected a KubeletConfiguration, found " + describe(documents.front())});
  return std::nullopt;
}

bool is_hidden(const std::filesystem::path& path) {
  return path.filename().native().starts_with(".");
}

// The kubelet's suffix is .conf, and it reads hidden files and directories too. The other suffixes
// are headroom's own.
bool is_drop_in(const std::filesystem::directory_entry& entry, bool hidden) {
  const std::string name = entry.path().filename();
  std::error_code error;
  if (entry.is_directory(error)) return false;
  if (name.ends_with(kKubeletSuffix)) return true;
  const std::string suffix = entry.path().extension();
  return !hidden &&
         std::find(kOwnSuffixes.begin(), kOwnSuffixes.end(), suffix) != kOwnSuffixes.end();
}

// In the kubelet's order: the entries of a directory by name, a directory's own entries at its
// place. Links to directories are not followed, so the walk ends.
void walk(const std::filesystem::path& directory, bool hidden,
          std::vector<std::filesystem::path>& files, std::error_code& error) {
  std::vector<std::filesystem::directory_entry> entries;
  std::filesystem::directory_iterator each(directory, error);
  for (; !error && each != std::filesystem::directory_iterator(); each.increment(error))
    entries.push_back(*each);
  std::sort(entries.begin(), entries.end());
  for (const std::filesystem::directory_entry& entry : entries) {
    if (error) return;
    std::error_code ignored;
    const bool below_hidden = hidden || is_hidden(entry.path());
    if (entry.symlink_status(ignored).type() == std::filesystem::file_type::directory)
      walk(entry.path(), below_hidden, files, error);
    else if (is_drop_in(entry, below_hidden))
      files.push_back(entry.path());
  }
}

}  // namespace

void MergedConfig::add(const std::string& file, const std::string& text, bool drop_in,
                       Diagnostics& diagnostics) {
  if (files_.size() == kMaxFiles) {
    diagnostics.push_back({file, 0, "more than " + std::to_string(kMaxFiles) + " files"});
    return;
  }
  const int base = static_cast<int>(files_.size()) * kLinesPerFile;
  files_.push_back(file);
  Diagnostics file_diagnostics;
  if (auto document = read(file, text, drop_in, file_diagnostics)) {
    rename_old_keys(*document, file, file_diagnostics, warnings_);
    shift_lines(*document, base);
    merge(document_, std::move(*document));
  }
  for (Diagnostic& diagnostic : file_diagnostics) {
    diagnostic.line += base;
    diagnostics.push_back(std::move(diagnostic));
  }
}

Diagnostic MergedConfig::with_file_and_line(Diagnostic diagnostic) const {
  const auto file = static_cast<std::size_t>(diagnostic.line / kLinesPerFile);
  if (diagnostic.line <= 0 || file >= files_.size()) return diagnostic;
  diagnostic.file = files_[file];
  diagnostic.line %= kLinesPerFile;
  return diagnostic;
}

std::string MergedConfig::location(int line) const {
  const Diagnostic where = with_file_and_line({"", line, ""});
  return where.file + ":" + std::to_string(where.line);
}

Result<std::vector<std::filesystem::path>> drop_ins(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  walk(directory, false, files, error);
  if (error) return failure(error.message(), error.value());
  return files;
}

}  // namespace headroom::config
