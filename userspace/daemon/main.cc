// SPDX-License-Identifier: Apache-2.0
// headroomd: see headroomd(8).
#include "base/block_signals.h"
#include "base/log/journal.h"
#include "config/flags/command_line.h"
#include "config/load/effective_settings.h"
#include "config/load/load.h"
#include "daemon/app.h"
#include "daemon/loop.h"
#include "daemon/restore_changes.h"
#include "daemon/slices/slice_reconciler.h"
#include "daemon/sources/node_sources.h"
#include "daemon/startup.h"
#include "manifest/manifest_cache.h"

#include <exception>
#include <filesystem>
#include <iostream>

namespace {

using namespace headroom;

// The unit does not start it again after 2 and 3: only a person can change what is wrong.
constexpr int kCannotRun = 1, kInvalidConfiguration = 2, kUnsupportedHost = 3;

int print_diagnostics(const config::Diagnostics& diagnostics) {
  config::print(diagnostics, std::cerr);
  return kInvalidConfiguration;
}

int cannot_run(const Error& error, int status = kCannotRun) {
  std::cerr << "headroomd: " << error.what << '\n';
  return status;
}

// There may be no next start that does it: an upgrade that fails, a host that has changed.
int cannot_start(const Error& error, const std::filesystem::path& state_dir,
                 int status = kCannotRun) {
  daemon::restore_limits_of_no_daemon(state_dir);
  return cannot_run(error, status);
}

int restore(const config::Config& config) {
  const log::Logging logging(config.log_level);
  const auto done = daemon::restore_everything(config);
  return done ? 0 : cannot_run(done.error());
}

int invalid_configuration(const config::CommandLine& line, const config::LoadResult& loaded) {
  if (!line.check_config) {
    const log::Logging logging(loaded.config.log_level);
    daemon::restore_limits_of_no_daemon(loaded.config.state_dir);
  }
  return print_diagnostics(loaded.diagnostics);
}

int serve(const config::CommandLine& line, config::LoadResult loaded,
          observe::ManifestCache manifest_cache, observe::Manifests manifests) {
  block_signals();
  const log::Logging logging(loaded.config.log_level);
  for (const std::string& warning : loaded.warnings)
    log::warning("{}", warning);
  for (const std::string& warning : config::kubelet_conflict_warnings(loaded.config))
    log::warning("{}", warning);
  for (const config::Diagnostic& manifest_warning : manifests.kubelet_complaints)
    log::warning("{}", to_string(manifest_warning));
  const std::filesystem::path state_dir = loaded.config.state_dir;
  auto root = daemon::preflight(loaded.config.policy.mode);
  if (!root) return cannot_start(root.error(), state_dir, kUnsupportedHost);
  daemon::lock_memory_and_limits();
  auto app = daemon::App::start(std::move(loaded.config), std::move(*root), std::move(manifests));
  if (!app) return cannot_start(app.error(), state_dir);
  auto loop = daemon::Loop::open(**app, line, std::move(manifest_cache), std::move(loaded.configz));
  if (!loop) return cannot_run(loop.error());
  if (auto ended = (*loop)->run(); !ended) return cannot_run(ended.error());
  return 0;
}

int run(int argc, char** argv) {
  auto line = config::parse_command_line(argc, argv);
  if (!line) return print_diagnostics(line.error());
  if (line->help) {
    std::cout << config::help_text();
    return 0;
  }
  if (line->version) {
    std::cout << "headroomd " << HEADROOM_VERSION << '\n';
    return 0;
  }
  // Also reads the manifests if the configuration is invalid, so that all errors are reported at
  // once.
  auto loaded = daemon::load_config(*line, daemon::LoadReason::kStart, &daemon::capacity_now);
  observe::ManifestCache manifest_cache;
  observe::Manifests manifests = manifest_cache.read(daemon::manifest_sources(loaded.config));
  loaded.diagnostics.insert(loaded.diagnostics.end(), manifests.diagnostics.begin(),
                            manifests.diagnostics.end());
  if (line->restore) return restore(loaded.config);
  if (!loaded.diagnostics.empty()) return invalid_configuration(*line, loaded);
  if (line->check_config) {
    for (const std::string& warning : loaded.warnings)
      std::cerr << warning << '\n';
    std::cout << "the configuration is good\n";
    return 0;
  }
  return serve(*line, std::move(loaded), std::move(manifest_cache), std::move(manifests));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& thrown) {  // from a library: headroom's code does not throw
    std::cerr << "headroomd: " << thrown.what() << '\n';
    return kCannotRun;
  }
}
