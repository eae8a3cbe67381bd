// SPDX-License-Identifier: Apache-2.0
#include "daemon/pod_containers.h"

#include <optional>

namespace headroom::daemon {
namespace {

std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix : {".service", ".scope"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

bool named_by(std::string_view stem, const std::string& container) {
  if (stem == container) return true;
  return stem.size() > container.size() && stem.ends_with(container) &&
         stem[stem.size() - container.size() - 1] == '-';
}

// The longest that fits: "web-main" is rather web-main's than main's.
std::optional<std::string> name_of(const Pod& pod, std::string_view stem) {
  std::optional<std::string> best;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (named_by(stem, container.name) && (!best || best->size() < container.name.size()))
        best = container.name;
  return best;
}

bool is_single(const Pod& pod) {
  return pod.containers.size() == 1 && pod.init_containers.empty();
}

}  // namespace

std::multimap<std::string, std::string> containers_of(const Pod& pod,
                                                      const observe::PodCgroup& cgroup,
                                                      const Identify& identify) {
  std::multimap<std::string, std::string> found;
  for (const observe::ContainerCgroup& each : cgroup.containers) {
    const ContainerIdentity* told = each.runtime.empty() ? nullptr : identify(each.name);
    if (told && told->sandbox) continue;
    if (told && !told->container.empty())
      found.emplace(told->container, each.path);
    else if (const auto name = name_of(pod, without_suffix(each.name)))
      found.emplace(*name, each.path);
    else if (is_single(pod))
      found.emplace(pod.containers.front().name, each.path);
  }
  return found;
}

}  // namespace headroom::daemon
