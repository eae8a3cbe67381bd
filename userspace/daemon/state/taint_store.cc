// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/taint_store.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

json to_json(const std::vector<Taint>& taints) {
  json list = json::array();
  for (const Taint& taint : taints)
    list.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", name(taint.effect)}});
  return list;
}

// An effect this version does not know would be a damaged file: at() throws what parse() throws.
std::vector<Taint> taints_from(const json& list) {
  std::vector<Taint> taints;
  for (const json& entry : list) {
    const auto effect = taint_effect_named(entry.at("effect").get<std::string>());
    taints.push_back(
        {entry.at("key"), entry.at("value"), effect.value_or(TaintEffect::kNoSchedule)});
  }
  return taints;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

}  // namespace

TaintStore::TaintStore(const std::filesystem::path& state_dir)
    : path_(state_dir / "taints.json"),
      boot_id_(read_boot_id()),
      edited_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

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
  std::ifstream file(path_);
  if (!file) return {};
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return {};
    auto configured = taints_from(whole.at("configured"));
    taints_ = taints_from(whole.at("taints"));
    configured_ = std::move(configured);
  } catch (const json::exception& damaged) {
    taints_.clear();
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  return {};
}

Result<> TaintStore::save(const std::vector<Taint>& taints) const {
  const json whole{
      {"boot_id", boot_id_}, {"configured", to_json(configured_)}, {"taints", to_json(taints)}};
  return write_atomically(path_, whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<std::vector<Taint>> TaintStore::edit(std::span<const TaintEdit> edits, bool overwrite) {
  const std::lock_guard lock(mutex_);
  auto next = apply_taint_edits(taints_, edits, overwrite);
  if (!next) return failure(join_lines(next.error()));
  if (auto saved = save(*next); !saved) return tl::make_unexpected(saved.error());
  taints_ = std::move(*next);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(edited_.get(), &one, sizeof(one));
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
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(edited_.get(), &count, sizeof(count));
}

}  // namespace headroom::daemon
