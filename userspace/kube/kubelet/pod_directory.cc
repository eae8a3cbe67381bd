// SPDX-License-Identifier: Apache-2.0
#include "kube/kubelet/pod_directory.h"

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "config/keys.h"
#include "config/yaml/yaml.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {

using Json = nlohmann::ordered_json;

Result<std::string> configuration_from(std::string_view configz) {
  const Json answer = Json::parse(configz, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("kubeletconfig") ||
      !answer["kubeletconfig"].is_object())
    return failure("expected {\"kubeletconfig\": {...}}, found something else");
  const Json& kubelet_config = answer["kubeletconfig"];
  Json kept{{"apiVersion", "kubelet.config.k8s.io/v1beta1"}, {"kind", "KubeletConfiguration"}};
  for (const config::KeyDescription& key : config::all_keys()) {
    const std::string name(key.path);
    if (name != "registerWithTaints" && kubelet_config.contains(name) &&
        !kubelet_config[name].is_null())
      kept[name] = kubelet_config[name];
  }
  return to_json_text(kept, 1) + "\n";
}

namespace fs = std::filesystem;

Result<PodDirectory> PodDirectory::open(fs::path directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return errno_failure("create " + directory.string(), error.value());
  PodDirectory held(std::move(directory));
  if (auto taken = held.load_existing(); !taken) return tl::make_unexpected(taken.error());
  return held;
}

Result<> PodDirectory::load_existing() {
  std::error_code error;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path& path = at->path();
    const std::string name = path.filename().string();
    if (name.starts_with("."))
      ::unlink(path.c_str());  // a partial file of an interrupted process
    else if (path.extension() == ".json")
      if (const auto text = config::read_file(path))
        hashes_.emplace(path.stem().string(), std::hash<std::string_view>{}(*text));
  }
  if (error) return errno_failure("read " + directory_.string(), error.value());
  return {};
}

PodDirectory::Changes PodDirectory::sync(const std::map<std::string, std::string>& pods) {
  Changes changes;
  for (const auto& [uid, text] : pods) {
    const std::size_t hash = std::hash<std::string_view>{}(text);
    const auto known = hashes_.find(uid);
    if (known != hashes_.end() && known->second == hash) continue;
    if (auto written = write_atomically(file_of(uid), text, {.mode = 0644}); !written) {
      changes.failed.push_back(written.error());
      continue;
    }
    hashes_.insert_or_assign(uid, hash);
    ++changes.written;
  }
  for (auto at = hashes_.begin(); at != hashes_.end();) {
    if (pods.contains(at->first)) {
      ++at;
      continue;
    }
    if (::unlink(file_of(at->first).c_str()) != 0 && errno != ENOENT) {
      changes.failed.push_back(
          errno_failure("remove " + file_of(at->first).string(), errno).value());
      ++at;
      continue;
    }
    at = hashes_.erase(at);
    ++changes.removed;
  }
  return changes;
}

}  // namespace headroom::kube
