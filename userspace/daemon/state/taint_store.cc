// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/taint_store.h"

#include "base/file_io.h"
#include "daemon/state/unversioned_state.h"

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace headroom::daemon {
namespace {

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

}  // namespace

TaintStore::TaintStore(const std::filesystem::path& state_dir)
    : file_(state_dir / state::kTaintsFile, &decode_unversioned), edited_(open_event_fd()) {}

Result<> TaintStore::configure(std::vector<Taint> configured) {
  const std::lock_guard lock(mutex_);
  Result<> result;
  if (!loaded_) result = load();
  loaded_ = true;
  taints_ = reconcile_taints(std::move(taints_), configured_, configured);
  configured_ = std::move(configured);
  const auto saved = save(taints_);
  return result ? saved : result;
}

Result<> TaintStore::load() {
  auto saved = file_.load();
  if (!saved) return tl::make_unexpected(saved.error());
  configured_ = std::move(saved->configured);
  taints_ = std::move(saved->active);
  return {};
}

Result<> TaintStore::save(const std::vector<Taint>& taints) const {
  return file_.save({.configured = configured_, .active = taints});
}

Result<std::vector<Taint>> TaintStore::edit(std::span<const TaintEdit> edits, bool overwrite) {
  const std::lock_guard lock(mutex_);
  auto next = apply_taint_edits(taints_, edits, overwrite);
  if (!next) return failure(join_lines(next.error()));
  if (auto saved = save(*next); !saved) return tl::make_unexpected(saved.error());
  taints_ = std::move(*next);
  signal_event_fd(edited_.get());
  return taints_;
}

std::vector<Taint> TaintStore::active_taints() const {
  const std::lock_guard lock(mutex_);
  return taints_;
}

std::vector<std::shared_ptr<const Taint>> TaintStore::shared_taints() const {
  std::vector<std::shared_ptr<const Taint>> all;
  for (Taint& taint : active_taints())
    all.push_back(std::make_shared<const Taint>(std::move(taint)));
  return all;
}

void TaintStore::clear_edited() const {
  clear_event_fd(edited_.get());
}

}  // namespace headroom::daemon
