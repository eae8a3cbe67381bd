// SPDX-License-Identifier: Apache-2.0
#include "act/exec/pre_stop.h"

#include "act/exec/child_process.h"
#include "act/exec/command_starter.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom::act {
namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A cgroup that holds processes.
struct LeafCgroup {
  std::string name;
  Fd procs;
  pid_t first = 0;
};

std::optional<LeafCgroup> leaf_of(int directory, const std::string& name) {
  LeafCgroup leaf{.name = name,
                  .procs = Fd(::openat(directory, "cgroup.procs", O_RDWR | O_CLOEXEC))};
  if (!leaf.procs) return std::nullopt;
  char text[32];
  const ssize_t n = ::read(leaf.procs.get(), text, sizeof text);
  if (n <= 0) return std::nullopt;
  std::from_chars(text, text + n, leaf.first);
  if (leaf.first <= 0) return std::nullopt;
  return leaf;
}

void collect_leaf_cgroups(int directory, const std::string& name, std::vector<LeafCgroup>& leaves) {
  if (auto leaf = leaf_of(directory, name)) leaves.push_back(std::move(*leaf));
  Fd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return;
  const std::unique_ptr<DIR, CloseDir> listing(::fdopendir(copy.get()));
  if (!listing) return;
  copy.release();
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const Fd child(::openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (child) collect_leaf_cgroups(child.get(), entry->d_name, leaves);
  }
}

// Whether a runtime made the cgroup, which then has a 64-digit id as its name; the kubelet runs the
// commands of such containers.
bool is_runtime_id(std::string_view stem) {
  constexpr std::size_t kIdLength = 64;
  return stem.size() >= kIdLength &&
         stem.substr(stem.size() - kIdLength).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos;
}

std::string_view stem_of(std::string_view name) {
  for (const std::string_view suffix : {".service", ".scope"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

bool names_container(std::string_view stem, const std::string& container) {
  if (stem == container) return true;
  if (stem.size() <= container.size() || !stem.ends_with(container)) return false;
  const char before = stem[stem.size() - container.size() - 1];
  return before == '-' || before == '.';
}

// "web-main" matches a container web-main before it matches main.
bool is_cgroup_of(const Pod& pod, const Container& container, std::string_view stem) {
  if (is_runtime_id(stem) || !names_container(stem, container.name)) return false;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& other : *list)
      if (other.name.size() > container.name.size() && names_container(stem, other.name))
        return false;
  return true;
}

// The only cgroup of that name; in a pod of one container, the only cgroup with processes.
const LeafCgroup* leaf_for(const Pod& pod, const Container& container,
                           const std::vector<LeafCgroup>& leaves) {
  const LeafCgroup* found = nullptr;
  for (const LeafCgroup& leaf : leaves) {
    if (!is_cgroup_of(pod, container, stem_of(leaf.name))) continue;
    if (found) return nullptr;  // ambiguous
    found = &leaf;
  }
  const bool single = pod.containers.size() == 1 && pod.init_containers.empty();
  if (!found && single && leaves.size() == 1 && !is_runtime_id(stem_of(leaves.front().name)))
    found = &leaves.front();
  return found;
}

}  // namespace

int run_pre_stop(const Decision& decision, int directory, const std::string& socket,
                 Instant (*clock)(), const std::stop_token& stop) {
  std::vector<LeafCgroup> leaves;
  collect_leaf_cgroups(directory, "", leaves);
  int first_error = 0;
  const auto record_error = [&](int error) {
    if (first_error == 0) first_error = error;
  };
  std::vector<RunningCommand> running;
  for (const Container& container : decision.pod->containers) {
    if (container.pre_stop.empty()) continue;
    const LeafCgroup* leaf = leaf_for(*decision.pod, container, leaves);
    if (!leaf) {
      record_error(ESRCH);
      continue;
    }
    auto command = start_command(
        {.argv = container.pre_stop, .cgroup_procs = leaf->procs.get(), .target = leaf->first},
        socket, decision.deadline - clock());
    if (command)
      running.push_back(std::move(*command));
    else
      record_error(command.error().code != 0 ? command.error().code : EINVAL);
  }
  for (RunningCommand& command : running)
    record_error(command.wait(decision.deadline, clock, stop));
  return first_error;
}

}  // namespace headroom::act
