// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"
#include "base/pod_paths.h"
#include "config/yaml/section.h"
#include "judge/resources/pod_resources.h"
#include "manifest/manifest_reader.h"
#include "manifest/pod_fields.h"
#include "manifest/pod_status.h"

#include <headroom/eviction_unit.h>
#include <headroom/pod.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::observe {
namespace {

// read_volumes(): spec.volumes of a v1 Pod, as far as eviction needs it.

using config::Int32;
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

constexpr std::string_view kConfigSource = "kubernetes.io/config.source";
constexpr std::string_view kConfigMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kRootfs = "headroom.io/rootfs";
constexpr std::string_view kLogs = "headroom.io/logs";
constexpr std::chrono::seconds kDefaultGrace{30};

// The PriorityClasses every cluster has; the API server writes their value into spec.priority, but
// a manifest a person wrote may hold the name alone.
constexpr std::int32_t kClusterCritical = 2'000'000'000;
constexpr std::int32_t kNodeCritical = 2'000'001'000;

void check_requests_within_limits(const Section& resources, const Container& container) {
  const auto requests = resources.map("requests");
  if (!requests) return;
  for (const config::yaml::Entry& entry : requests->entries()) {
    const auto request = container.requests.find(entry.key);
    const auto limit = container.limits.find(entry.key);
    if (request != container.requests.end() && limit != container.limits.end() &&
        request->second > limit->second)
      requests->add_error(entry, "the request of " + request->second.canonical() +
                                     " is more than the limit of " + limit->second.canonical());
  }
}

// `resources:` of a container or of the pod.
void read_resources(const Section& owner, Container& container) {
  const auto resources = owner.map("resources");
  if (!resources) return;
  container.requests = read_quantities(*resources, "requests");
  container.limits = read_quantities(*resources, "limits");
  check_requests_within_limits(*resources, container);
}

// Only exec commands can be run from outside; httpGet and sleep are the kubelet's.
void read_pre_stop(const Section& section, Container& container) {
  const auto lifecycle = section.map("lifecycle");
  const auto pre_stop = lifecycle ? lifecycle->map("preStop") : std::nullopt;
  const auto exec = pre_stop ? pre_stop->map("exec") : std::nullopt;
  const auto words = exec ? exec->list_of_strings("command") : std::nullopt;
  if (!words) return;
  for (const config::LocatedText& word : *words)
    container.pre_stop.push_back(word.text);
  if (container.pre_stop.empty())
    exec->add_error("command", "expected a command and its arguments, found an empty list");
}

Container read_container(const Section& section) {
  Container container;
  container.name = printable(section.required_string("name"));
  read_resources(section, container);
  read_pre_stop(section, container);
  container.requests.insert(container.limits.begin(), container.limits.end());
  return container;
}

void read_containers(const Section& spec, Pod& pod) {
  const bool host_network = spec.boolean("hostNetwork").value_or(false);
  if (const auto sections = spec.list_of_maps("initContainers")) {
    for (const Section& section : *sections) {
      pod.init_containers.push_back(read_container(section));
      pod.init_containers.back().sidecar = section.string("restartPolicy") == "Always";
      if (pod.init_containers.back().sidecar)
        read_host_ports(section, host_network, pod.placement.host_ports);
    }
  }
  if (const auto sections = spec.list_of_maps("containers"))
    for (const Section& section : *sections) {
      pod.containers.push_back(read_container(section));
      read_host_ports(section, host_network, pod.placement.host_ports);
    }
  if (pod.containers.empty())
    spec.add_error_at(spec.line_of("containers"),
                      spec.path_of("containers") + ": expected at least one container");
}

// An empty map says nothing: the kubelet of 1.36 takes such a pod for BestEffort whatever its
// containers request, which a later release repairs.
void read_pod_level(const Section& spec, Pod& pod) {
  if (!spec.has("resources")) return;
  Container whole;
  read_resources(spec, whole);
  if (whole.requests.empty() && whole.limits.empty()) return;
  pod.pod_level = std::move(whole);
  default_pod_level_resources(pod);
}

void read_priority(const Section& spec, Pod& pod) {
  if (const auto name = spec.string("priorityClassName")) pod.priority_class = *name;
  if (const auto priority = spec.integer("priority", Int32::min(), Int32::max()))
    pod.priority = static_cast<std::int32_t>(*priority);
  else if (pod.priority_class == "system-node-critical")
    pod.priority = kNodeCritical;
  else if (pod.priority_class == "system-cluster-critical")
    pod.priority = kClusterCritical;
}

void read_spec(const Section& object, Pod& pod) {
  const auto spec = object.map("spec");
  if (!object.has("spec")) object.add_error_at(object.line(), "missing " + object.path_of("spec"));
  if (!spec) return;
  read_containers(*spec, pod);
  read_pod_level(*spec, pod);
  pod.volumes = read_volumes(*spec);
  pod.overhead = read_quantities(*spec, "overhead");
  read_priority(*spec, pod);
  read_placement(*spec, pod.placement);
  const auto grace = spec->integer("terminationGracePeriodSeconds", 0, Int32::max());
  pod.termination_grace = grace ? std::chrono::seconds(*grace) : kDefaultGrace;
}

std::string read_pattern(const Section& annotations, std::string_view key) {
  const auto pattern = annotations.string(key);
  if (!pattern) return "";
  const std::string objection = pattern_error(*pattern);
  if (objection.empty()) return *pattern;
  annotations.add_error(key, objection + ", found \"" + *pattern + "\"");
  return "";
}

// A mirror pod is the API server's copy of a static one, under a uid of its own: the cgroup bears
// the static pod's, which is the annotation's value.
void read_annotations(const Section& metadata, Pod& pod) {
  pod.annotations = read_labels(metadata, "annotations");
  const auto source = pod.annotations.find(kConfigSource);
  const auto mirror = pod.annotations.find(kConfigMirror);
  const auto none = pod.annotations.end();
  pod.is_static = mirror != none || (source != none && source->second != "api");
  if (mirror != none && !mirror->second.empty()) pod.uid = mirror->second;
  if (const auto annotations = metadata.map("annotations")) {
    pod.rootfs_path = read_pattern(*annotations, kRootfs);
    pod.logs_path = read_pattern(*annotations, kLogs);
    const auto unit = annotations->string(kEvictionUnitAnnotation);
    if (unit && !eviction_unit_named(*unit))
      annotations->add_error(kEvictionUnitAnnotation,
                             "expected pod, container or process, found \"" + *unit + "\"");
  }
}

// It is part of a cgroup's name, where a slash or an underscore would come back as something else.
bool could_be_uid(std::string_view uid) {
  return uid.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
         std::string_view::npos;
}

void read_metadata(const Section& object, Pod& pod) {
  const auto metadata = object.map("metadata");
  if (!metadata) {
    if (!object.has("metadata"))
      object.add_error_at(object.line(), "missing " + object.path_of("metadata.name"));
    return;
  }
  pod.name = printable(metadata->required_string("name"));
  const auto space = metadata->string("namespace");
  if (space && !space->empty()) pod.pod_namespace = printable(*space);
  if (const auto uid = metadata->string("uid")) pod.uid = *uid;
  pod.labels = read_labels(*metadata, "labels");
  pod.placement.daemon_set = owned_by_daemon_set(*metadata);
  read_annotations(*metadata, pod);
  if (!could_be_uid(pod.uid))
    metadata->add_error("uid", "expected letters, digits and dashes, found \"" + pod.uid + "\"");
  if (pod.uid.empty()) pod.uid = derived_uid(pod.pod_namespace, pod.name);
}

// The request to delete a pod may grant it less, or more, than its specification does.
void read_deletion(const Section& metadata, Pod& pod) {
  if (!metadata.has("deletionTimestamp")) return;
  const auto grace = metadata.integer("deletionGracePeriodSeconds", 0, Int32::max());
  if (grace) pod.termination_grace = std::chrono::seconds(*grace);
}

}  // namespace

Pod read_pod(const Section& object) {
  Pod pod;
  pod.source = PodSource::kManifest;
  read_metadata(object, pod);
  read_spec(object, pod);
  if (const auto metadata = object.map("metadata")) read_deletion(*metadata, pod);
  read_status(object, pod);
  return pod;
}

std::string derived_uid(std::string_view pod_namespace, std::string_view name) {
  // FNV-1a in 128 bits (draft-eastlake-fnv): short, and good enough to keep names apart.
  __extension__ using Hash = unsigned __int128;
  constexpr Hash kPrime = (Hash{1} << 88) + 0x13b;
  Hash hash = (Hash{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
  const auto mix = [&](std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  };
  mix(pod_namespace);
  mix("/");
  mix(name);

  std::string uid;
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) uid += '-';
    unsigned nibble = static_cast<unsigned>(hash >> (4 * (31 - digit))) & 0xf;
    if (digit == 12) nibble = 8;                     // the version
    if (digit == 16) nibble = 0x8 | (nibble & 0x3);  // the variant
    uid += "0123456789abcdef"[nibble];
  }
  return uid;
}

}  // namespace headroom::observe
