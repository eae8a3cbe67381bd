// SPDX-License-Identifier: Apache-2.0
#include "kube/kubelet/pod_list.h"

#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Keys = std::initializer_list<std::string_view>;

constexpr std::size_t kLongestAnnotation = 1024;  // bytes; a longer one is data of some tool

bool is_among(Keys keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

// A list may have tens of megabytes, most of which is not needed: unused keys are dropped while the
// list is parsed. The decision depends on the parent key, because a label may be called "env".
bool is_used_key(std::string_view parent, std::string_view key) {
  if (parent == "metadata")
    return is_among({"name", "namespace", "uid", "labels", "annotations", "ownerReferences",
                     "deletionTimestamp", "deletionGracePeriodSeconds"},
                    key);
  if (parent == "spec")
    return is_among({"containers", "initContainers", "volumes", "overhead", "resources", "priority",
                     "priorityClassName", "nodeName", "nodeSelector", "affinity", "tolerations",
                     "hostNetwork", "terminationGracePeriodSeconds"},
                    key);
  if (parent == "status")
    return is_among({"phase", "qosClass", "containerStatuses", "initContainerStatuses",
                     "allocatedResources", "resources"},
                    key);
  if (parent == "containers" || parent == "initContainers")
    return is_among({"name", "resources", "lifecycle", "ports", "restartPolicy"}, key);
  if (parent == "containerStatuses" || parent == "initContainerStatuses")
    return is_among({"name", "containerID", "image", "allocatedResources", "resources"}, key);
  return true;
}

// Follows the parser: which key's value is being read. Only the levels of the list itself are
// tracked. Depths of their contents, as the parser counts:
//   items[] . spec . containers[] . name
//   2         4      6
class Filter {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event != nlohmann::json::parse_event_t::key) return true;
    const auto at = static_cast<std::size_t>(depth);
    names_.resize(std::max(names_.size(), at + 1));
    names_.resize(at + 1);
    names_[at] = parsed.get<std::string>();
    if (at == kPod) return is_among({"metadata", "spec", "status"}, names_[at]);
    if (at == kPart) return is_used_key(names_[kPod], names_[at]);
    if (at == kItem && is_list()) return is_used_key(names_[kPart], names_[at]);
    return true;
  }

 private:
  static constexpr std::size_t kPod = 3, kPart = 4, kItem = 6;

  bool is_list() const {
    return (names_[kPod] == "spec" || names_[kPod] == "status") &&
           is_among({"containers", "initContainers", "containerStatuses", "initContainerStatuses"},
                    names_[kPart]);
  }

  std::vector<std::string> names_;
};

const nlohmann::json& member(const nlohmann::json& json, const char* name) {
  static const nlohmann::json none;
  if (!json.is_object()) return none;
  const auto found = json.find(name);
  return found == json.end() ? none : *found;
}

std::string text(const nlohmann::json& json, const char* name) {
  const nlohmann::json& value = member(json, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// headroomd uses the kind and the size of a volume, but not its secret or claim.
void trim_volumes(nlohmann::json& spec) {
  if (!spec.is_object() || !spec.contains("volumes")) return;
  for (nlohmann::json& volume : spec["volumes"]) {
    if (!volume.is_object()) continue;
    nlohmann::json kept = nlohmann::json::object();
    for (auto& [key, value] : volume.items()) {
      if (key == "name" || key == "emptyDir")
        kept[key] = std::move(value);
      else if (key == "hostPath")
        kept[key] = {{"path", text(value, "path")}};
      else
        kept[key] = nlohmann::json::object();
    }
    volume = std::move(kept);
  }
}

void trim_annotations(nlohmann::json& metadata) {
  if (!metadata.is_object() || !metadata.contains("annotations")) return;
  nlohmann::json& annotations = metadata["annotations"];
  if (!annotations.is_object()) return;
  annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
  annotations.erase("kubernetes.io/config.seen");  // changes with every restart of the kubelet
  for (auto at = annotations.begin(); at != annotations.end();)
    if (at->is_string() && at->get_ref<const std::string&>().size() > kLongestAnnotation)
      at = annotations.erase(at);
    else
      ++at;
}

// Annotations that headroomd uses.
bool is_needed(std::string_view key) {
  return key.starts_with("headroom.io/") || key.starts_with("kubernetes.io/config.");
}

// Drops entries beyond kMaxLabels, last keys first, but none that headroomd uses. True if some were
// dropped.
bool cut_to_limit(nlohmann::json& metadata, const char* name) {
  if (!metadata.is_object() || !metadata.contains(name)) return false;
  nlohmann::json& map = metadata[name];
  if (!map.is_object() || map.size() <= kMaxLabels) return false;
  std::vector<std::string> surplus;
  std::size_t kept = 0;
  for (const auto& [key, value] : map.items())
    if (is_needed(key)) ++kept;
  for (const auto& [key, value] : map.items())
    if (!is_needed(key) && ++kept > kMaxLabels) surplus.push_back(key);
  for (const std::string& key : surplus)
    map.erase(key);
  return !surplus.empty();
}

// Reduces each owner to the fields that headroomd uses to recognise the pods of a DaemonSet.
void trim_owners(nlohmann::json& metadata) {
  if (!metadata.is_object() || !metadata.contains("ownerReferences")) return;
  for (nlohmann::json& owner : metadata["ownerReferences"])
    if (owner.is_object())
      owner = {{"apiVersion", text(owner, "apiVersion")},
               {"kind", text(owner, "kind")},
               {"name", text(owner, "name")},
               {"controller", member(owner, "controller")}};
}

bool has_ended(const nlohmann::json& pod) {
  const std::string phase = text(member(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

// The uid becomes the name of a file.
bool could_be_uid(std::string_view uid) {
  constexpr std::size_t kLongest = 128;
  return !uid.empty() && uid.size() <= kLongest &&
         uid.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
             std::string_view::npos;
}

std::string as_file(nlohmann::json& pod) {
  trim_volumes(pod["spec"]);
  trim_owners(pod["metadata"]);
  pod["apiVersion"] = "v1";  // the items of a list may omit it
  pod["kind"] = "Pod";
  return to_json_text(pod) + "\n";
}

void add(nlohmann::json& pod, std::string uid, PodFiles& files) {
  nlohmann::json& metadata = pod["metadata"];
  const std::string name = text(metadata, "namespace") + "/" + text(metadata, "name");
  trim_annotations(metadata);
  const bool labels_cut = cut_to_limit(metadata, "labels");
  const bool annotations_cut = cut_to_limit(metadata, "annotations");
  if (labels_cut || annotations_cut) files.cut.push_back(name);
  std::string text = as_file(pod);
  if (text.size() > kMaxPodFileBytes)
    files.too_large.push_back(name);
  else
    files.pods.insert_or_assign(std::move(uid), std::move(text));
}

}  // namespace

Result<PodFiles> pod_files(std::string_view answer) {
  Filter filter;
  nlohmann::json list = nlohmann::json::parse(
      answer.begin(), answer.end(),
      [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        return filter(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  if (list.is_discarded()) return failure("the response is not JSON, or it is truncated");
  if (text(list, "kind") != "PodList")
    return failure("expected a PodList, found kind \"" + text(list, "kind") + "\"");
  PodFiles files;
  if (!list.contains("items") || list["items"].is_null()) return files;
  if (!list["items"].is_array()) return failure("expected items to be a list");
  for (nlohmann::json& pod : list["items"]) {
    std::string uid = text(member(pod, "metadata"), "uid");
    if (!could_be_uid(uid))
      ++files.invalid;
    else if (has_ended(pod))
      ++files.ended;
    else
      add(pod, std::move(uid), files);
  }
  return files;
}

}  // namespace headroom::kube
