// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/oci_bundle.h"

#include "base/human_readable.h"

#include <array>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

namespace headroom::observe {
namespace {

// "%" stands for the id.
constexpr std::array<std::string_view, 3> kBundles{
    "run/containerd/io.containerd.runtime.v2.task/k8s.io/%/config.json",
    "run/containers/storage/overlay-containers/%/userdata/config.json",
    "var/lib/containers/storage/overlay-containers/%/userdata/config.json"};
constexpr std::string_view kDocker = "var/lib/docker/containers/%/config.v2.json";
constexpr std::uintmax_t kLargest = 4 << 20;  // more is no description of a container

std::optional<std::string> read(const std::filesystem::path& root, std::string_view pattern,
                                std::string_view id) {
  std::string path(pattern);
  path.replace(path.find('%'), 1, id);
  std::error_code error;
  const auto size = std::filesystem::file_size(root / path, error);
  if (error || size > kLargest) return std::nullopt;
  std::ifstream file(root / path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<nlohmann::json> parse_object(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

const nlohmann::json& member(const nlohmann::json& json, const char* name) {
  static const nlohmann::json none;
  if (!json.is_object()) return none;
  const auto found = json.find(name);
  return found == json.end() ? none : *found;
}

// The first of these names that has a string.
std::string text(const nlohmann::json& json, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const nlohmann::json& value = member(json, name); value.is_string())
      return printable(value.get_ref<const std::string&>());
  return "";
}

// containerd's word first, then CRI-O's and dockershim's.
ContainerIdentity from_annotations(const nlohmann::json& annotations) {
  ContainerIdentity identity;
  identity.container =
      text(annotations, {"io.kubernetes.cri.container-name", "io.kubernetes.container.name"});
  identity.image =
      text(annotations, {"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"});
  identity.pod = text(annotations, {"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"});
  identity.pod_namespace =
      text(annotations, {"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"});
  const std::string type =
      text(annotations, {"io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType",
                         "io.kubernetes.docker.type"});
  identity.sandbox = type == "sandbox" || type == "podsandbox";
  if (identity.sandbox) identity.container.clear();  // CRI-O and dockershim say "POD"
  return identity;
}

ContainerIdentity from_docker(const nlohmann::json& description) {
  const nlohmann::json& config = member(description, "Config");
  ContainerIdentity identity = from_annotations(member(config, "Labels"));
  identity.name = text(description, {"Name"});
  if (identity.name.starts_with("/")) identity.name.erase(0, 1);
  if (identity.image.empty()) identity.image = text(config, {"Image"});
  return identity;
}

// The id comes from a directory's name: it must not lead anywhere else.
bool is_id(std::string_view id) {
  return !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<ContainerIdentity> find_container(std::string_view id,
                                                const std::filesystem::path& root) {
  if (!is_id(id)) return std::nullopt;
  for (const std::string_view bundle : kBundles)
    if (const auto config = read(root, bundle, id))
      if (auto identity = parse_oci_config(*config)) return identity;
  const auto config = read(root, kDocker, id);
  return config ? parse_docker_config(*config) : std::nullopt;
}

std::optional<ContainerIdentity> parse_oci_config(const std::string& text) {
  const auto json = parse_object(text);
  if (!json) return std::nullopt;
  return from_annotations(member(*json, "annotations"));
}

std::optional<ContainerIdentity> parse_docker_config(const std::string& text) {
  const auto json = parse_object(text);
  if (!json) return std::nullopt;
  return from_docker(*json);
}

}  // namespace headroom::observe
