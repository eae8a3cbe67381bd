// SPDX-License-Identifier: Apache-2.0
#include "kube/kube_config.h"

#include "base/log/journal.h"
#include "config/reload.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string environment_value(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

void fill_in(std::string& text, const std::string& node_name) {
  constexpr std::string_view kPlace = "{nodeName}";
  for (std::size_t at = 0; (at = text.find(kPlace, at)) != std::string::npos;
       at += node_name.size())
    text.replace(at, kPlace.size(), node_name);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::string node_name_of(const config::Config& config, const Environment& environment) {
  if (!config.node_name.empty()) return config.node_name;
  if (std::string name = environment_value(environment, "NODE_NAME"); !name.empty()) return name;
  return host_name();
}

config::ServerConfig complete_server(config::ServerConfig server, const std::string& node_name,
                                     const fs::path& service_account) {
  fill_in(server.url, node_name);
  fill_in(server.tls_name, node_name);
  if (!server.url.starts_with("https://")) return server;
  const fs::path token = service_account / "token", authority = service_account / "ca.crt";
  if (server.token_file.empty() && server.client_cert.empty() && is_there(token))
    server.token_file = token;
  if (server.ca_file.empty() && !server.insecure && is_there(authority)) server.ca_file = authority;
  return server;
}

config::ServerConfig api_server(const config::Config& config, const Environment& environment,
                                const fs::path& service_account) {
  config::ServerConfig server = config.kubernetes.api;
  if (server.url.empty()) {
    std::string host = environment_value(environment, "KUBERNETES_SERVICE_HOST");
    const std::string port = environment_value(environment, "KUBERNETES_SERVICE_PORT");
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    if (!host.empty()) server.url = "https://" + host + (port.empty() ? "" : ":" + port);
  }
  return complete_server(std::move(server), node_name_of(config, environment), service_account);
}

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
