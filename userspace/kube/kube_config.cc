// SPDX-License-Identifier: Apache-2.0
#include "kube/kube_config.h"

#include "base/log/journal.h"
#include "config/reload.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headroom::kube {
namespace {

// The keys that headroom-kube uses, of those that need a restart.
bool uses(std::string_view path) {
  constexpr std::array<std::string_view, 4> kUsed{"headroom.nodeName", "headroom.auditLog",
                                                  "headroom.nodeStatus",
                                                  "headroom.kubernetes.runDirectory"};
  return std::ranges::find(kUsed, path) != kUsed.end();
}

}  // namespace

config::LoadResult load_config(const config::CommandLine& line) {
  return config::read(line, {.use_configz = false});
}

config::Config reload_config(const config::CommandLine& line, config::Config running) {
  config::LoadResult loaded = load_config(line);
  for (const config::Diagnostic& diagnostic : loaded.diagnostics)
    log::error("{}", to_string(diagnostic));
  if (!loaded.diagnostics.empty()) {
    log::error("the configuration is not reloaded: the one in force stays");
    return running;
  }
  for (const std::string& warning : loaded.warnings)
    log::warning("{}", warning);
  config::Config adopted = config::adopt_reload(std::move(loaded.config), running);
  for (const config::ConfigSetting& setting : adopted.settings)
    if (!setting.next.empty() && uses(setting.path))
      log::warning("{}: {} takes effect when headroomd and headroom-kube are restarted",
                   setting.path, setting.next_origin);
  log::set_level(adopted.log_level);
  log::info("reloaded");
  return adopted;
}

}  // namespace headroom::kube
