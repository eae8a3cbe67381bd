// SPDX-License-Identifier: Apache-2.0
#include "act/pre_stop.h"

#include "act/command.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

namespace headroom::act {
namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A cgroup that holds processes.
struct Leaf {
  std::string name;
  Fd procs;
  pid_t first = 0;
};

std::optional<Leaf> leaf_of(int directory, const std::string& name) {
  Leaf leaf{.name = name, .procs = Fd(::openat(directory, "cgroup.procs", O_RDWR | O_CLOEXEC))};
  if (!leaf.procs) return std::nullopt;
  char text[32];
  const ssize_t n = ::read(leaf.procs.get(), text, sizeof text);
  if (n <= 0) return std::nullopt;
  std::from_chars(text, text + n, leaf.first);
  if (leaf.first <= 0) return std::nullopt;
  return leaf;
}

void gather(int directory, const std::string& name, std::vector<Leaf>& leaves) {
  if (auto leaf = leaf_of(directory, name)) leaves.push_back(std::move(*leaf));
  Fd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return;
  const std::unique_ptr<DIR, CloseDir> listing(::fdopendir(copy.get()));
  if (!listing) return;
  copy.release();
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const Fd child(::openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (child) gather(child.get(), entry->d_name, leaves);
  }
}

// The container's own where its cgroup bears its name; else the pod's first.
const Leaf* leaf_for(const Container& container, const std::vector<Leaf>& leaves) {
  for (const Leaf& leaf : leaves)
    if (leaf.name.find(container.name) != std::string::npos) return &leaf;
  return leaves.empty() ? nullptr : &leaves.front();
}

}  // namespace

int run_pre_stop(const Decision& decision, int directory, Instant (*clock)(),
                 const std::stop_token& stop) {
  std::vector<Leaf> leaves;
  gather(directory, "", leaves);
  int trouble = 0;
  const auto note = [&](int error) {
    if (trouble == 0) trouble = error;
  };
  std::vector<Child> running;
  for (const Container& container : decision.pod->containers) {
    if (container.pre_stop.empty()) continue;
    const Leaf* leaf = leaf_for(container, leaves);
    if (!leaf) return ESRCH;
    auto child = Child::start(
        {.argv = container.pre_stop, .cgroup_procs = leaf->procs.get(), .beside = leaf->first});
    if (child)
      running.push_back(std::move(*child));
    else
      note(child.error().code != 0 ? child.error().code : EINVAL);
  }
  for (Child& child : running)
    note(child.wait(decision.deadline, clock, stop));
  return trouble;
}

}  // namespace headroom::act
