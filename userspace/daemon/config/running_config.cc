// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/running_config.h"

#include "base/json_text.h"
#include "base/log/journal.h"
#include "config/reload.h"
#include "judge/eviction/threshold/threshold_config.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

constexpr std::string_view kFastestFill = "headroom.fastestFill";

std::int64_t at_least_default(std::int64_t measured_fill) {
  return std::max(Policy{}.fastest_fill, measured_fill);
}

// Sets the values that the configuration omits to those found on this host.
void set_found_values(config::Config& config, const observe::Filesystems& filesystems) {
  const auto set_found = [&](std::string_view path, const std::string& value) {
    for (config::ConfigSetting& setting : config.settings)
      if (setting.path == path && setting.value == "null" && !value.empty()) {
        setting.value = value;
        setting.origin = "found";
      }
  };
  const auto text = [](const std::filesystem::path& path) {
    return to_json_text(nlohmann::json(path.string()));
  };
  set_found(kFastestFill, std::to_string(config.policy.fastest_fill));
  set_found("headroom.podsCgroup", text(config.pods_cgroup));
  set_found("headroom.disk.nodefs", text(filesystems.nodefs));
  if (filesystems.imagefs) set_found("headroom.disk.imagefs", text(*filesystems.imagefs));
  if (filesystems.containerfs)
    set_found("headroom.disk.containerfs", text(*filesystems.containerfs));
}

}  // namespace

observe::Filesystems filesystems_of(const config::Config& config) {
  const observe::FilesystemPaths configured{.nodefs = config.disk.nodefs,
                                            .imagefs = config.disk.imagefs,
                                            .containerfs = config.disk.containerfs};
  if (auto found = observe::find_filesystems_in_time(configured)) return *std::move(found);
  log::warning(
      "a filesystem of nodefs, imagefs or containerfs does not answer: images are taken to be on "
      "nodefs until a reload finds it");
  observe::Filesystems named{.nodefs = configured.nodefs.empty() ? "/" : configured.nodefs,
                             .imagefs = std::nullopt,
                             .containerfs = std::nullopt,
                             .images = {}};
  if (!configured.imagefs.empty()) named.imagefs = configured.imagefs;
  if (!configured.containerfs.empty()) named.containerfs = configured.containerfs;
  return named;
}

config::Config complete_config(config::Config config, std::int64_t measured_fill,
                               const observe::Filesystems& filesystems) {
  Policy& policy = config.policy;
  if (!config.fastest_fill_configured) policy.fastest_fill = at_least_default(measured_fill);
  auto whole = with_containerfs(std::move(policy.thresholds), filesystems.images);
  if (whole.overwritten)
    log::warning("thresholds of containerfs are not configured: they follow those of {}",
                 filesystems.images.dedicated && !filesystems.images.split ? "imagefs" : "nodefs");
  policy.thresholds = std::move(whole.thresholds);
  set_found_values(config, filesystems);
  return config;
}

void use_state_of_an_observer(config::Config& config) {
  config.state_dir /= "observing";
  for (config::ConfigSetting& setting : config.settings)
    if (setting.path == "headroom.stateDirectory") {
      setting.value = to_json_text(nlohmann::json(config.state_dir.string()));
      setting.origin = "found";
    }
}

observe::DiskMeterOptions disk_meter_options(const config::Config& config) {
  return {.paths = config.disk.paths,
          .period = config.disk.measure_period,
          .rate = {config.disk.walk_rate},
          .host_paths = config.disk.host_paths};
}

act::ActuatorOptions actuator_options_of(const config::Config& config) {
  // Said by the unit, which has not the privileges that commands need.
  const char* const socket = std::getenv("HEADROOM_COMMANDS_SOCKET");
  return {.paths = config.disk.paths,
          .reclaim_containers = config.reclaim.containers,
          .reclaim_images = config.reclaim.images,
          .reclaim_memory = config.reclaim.memory,
          .reclaim_user = config.reclaim.user,
          .commands_socket = socket ? socket : ""};
}

using Json = nlohmann::ordered_json;

void ActiveSettings::set(config::ConfigSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::string ActiveSettings::json() const {
  config::ConfigSettings settings;
  {
    const std::lock_guard lock(mutex_);
    settings = settings_;
  }
  Json list = Json::array();
  for (const config::ConfigSetting& each : settings) {
    Json setting{{"path", each.path}};
    if (!each.entry.empty()) setting["entry"] = each.entry;
    setting["value"] = Json::parse(each.value, nullptr, false);
    setting["origin"] = each.origin;
    if (!each.next.empty()) {
      setting["next"] = Json::parse(each.next, nullptr, false);
      setting["nextOrigin"] = each.next_origin;
    }
    list.push_back(std::move(setting));
  }
  return to_json_text(Json{{"version", HEADROOM_VERSION}, {"settings", std::move(list)}});
}

RunningConfig::RunningConfig(config::Config config, std::filesystem::path cgroup_root,
                             std::optional<EnforceLock> lock)
    : cgroup_root_(std::move(cgroup_root)),
      lock_(std::move(lock)),
      measured_fill_(observe::measure_fill()),
      filesystems_(filesystems_of(config)),
      taints_(config.state_dir),
      config_(with_current_taints(complete_config(
          std::move(config), observe::fastest_fill(measured_fill_), filesystems_))) {
  settings_.set(config_.settings);
}

config::Config RunningConfig::with_current_taints(config::Config config) {
  if (auto result = taints_.configure(config.taints); !result)
    log::error("{}: edited taints will be lost when this daemon ends", result.error().what);
  config.policy.taints = taints_.shared_taints();
  return config;
}

// Two daemons in mode enforce would each kill a pod for the same shortage. Without the lock the
// mode stays observe; the rest of the configuration is adopted.
void RunningConfig::take_lock(config::Config& fresh) {
  if (fresh.policy.mode != Mode::kEnforce || lock_) return;
  auto taken = EnforceLock::take_for_node(cgroup_root_);
  if (taken) {
    lock_.emplace(std::move(*taken));
    return;
  }
  log::error("{}; headroom.mode stays observe", taken.error().what);
  fresh.policy.mode = Mode::kObserve;
  for (config::ConfigSetting& setting : fresh.settings)
    if (setting.path == "headroom.mode") {
      setting.value = R"("observe")";
      setting.origin = "found";
    }
}

void RunningConfig::adopt(config::Config fresh) {
  take_lock(fresh);
  fresh = with_current_taints(
      complete_config(std::move(fresh), observe::fastest_fill(measured_fill_), filesystems_));
  config_ = config::adopt_reload(std::move(fresh), config_);
  for (const config::ConfigSetting& setting : config_.settings)
    if (!setting.next.empty())
      log::warning("{}: {} takes effect at the next start", setting.path, setting.next_origin);
  settings_.set(config_.settings);
}

void RunningConfig::release_unused_lock() {
  if (!enforces()) lock_.reset();
}

bool RunningConfig::adopt_online_cpus(const std::filesystem::path& sys) {
  if (config_.fastest_fill_configured) return false;
  const std::int64_t fill = at_least_default(observe::fastest_fill(measured_fill_, sys));
  if (fill == config_.policy.fastest_fill) return false;
  config_.policy.fastest_fill = fill;
  for (config::ConfigSetting& setting : config_.settings)
    if (setting.path == kFastestFill) setting.value = std::to_string(fill);
  settings_.set(config_.settings);
  log::info("the CPUs online have changed: memory may fill at {} MiB/s", fill >> 20);
  return true;
}

void RunningConfig::adopt_taint_edits() {
  taints_.clear_edited();
  config_.policy.taints = taints_.shared_taints();
  std::string list;
  for (const auto& taint : config_.policy.taints)
    list.append(list.empty() ? "" : ", ").append(to_string(*taint));
  log::info("the node's taints are now: {}", list.empty() ? "none" : list);
}

}  // namespace headroom::daemon
