// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"

#include <array>
#include <string>
#include <string_view>

namespace headroom::config {
namespace {

constexpr auto kKeys =
    std::to_array<std::string_view>({"runDirectory", "stateDirectory", "kubelet", "api"});
constexpr auto kKubeletKeys = std::to_array<std::string_view>(
    {"url", "tlsServerName", "insecureSkipTLSVerify", "caFile", "tokenFile", "clientCertFile",
     "clientKeyFile", "timeout", "period", "configz"});
constexpr auto kApiKeys = std::to_array<std::string_view>(
    {"url", "tlsServerName", "insecureSkipTLSVerify", "caFile", "tokenFile", "clientCertFile",
     "clientKeyFile", "timeout", "afterEviction", "events", "conditions", "taints"});

using AfterEviction = ApiConfig::AfterEviction;
constexpr std::array<Choice<AfterEviction>, 4> kAfterEvictions{
    {{"none", AfterEviction::kNone},
     {"status", AfterEviction::kStatus},
     {"evict", AfterEviction::kEvict},
     {"delete", AfterEviction::kDelete}}};

// Scheme and host, and nothing after: paths are ours to say.
std::string url_error(std::string_view url) {
  const std::string error_text =
      "expected https://HOST:PORT or http://HOST:PORT, found \"" + std::string(url) + "\"";
  std::string_view rest = url;
  if (rest.starts_with("https://"))
    rest.remove_prefix(8);
  else if (rest.starts_with("http://"))
    rest.remove_prefix(7);
  else
    return error_text;
  if (rest.ends_with("/")) rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?#@ \t") != std::string_view::npos) return error_text;
  return "";
}

void read_url(const Section& section, std::string& url) {
  const auto text = section.string("url");
  if (!text) return;
  if (const std::string error_text = text->empty() ? "" : url_error(*text); !error_text.empty())
    return section.add_error("url", error_text);
  url = text->ends_with("/") ? text->substr(0, text->size() - 1) : *text;
}

// A secret in a URL is sent and logged in the clear.
void reject_secrets_in_url(const Section& section, const ServerConfig& server) {
  if (!server.url.starts_with("http://")) return;
  for (const std::string_view key : {"tokenFile", "clientCertFile"})
    if (const auto text = section.string(key); text && !text->empty())
      section.add_error(key,
                        "is not sent in the clear: url is " + server.url + ", expected https://");
}

void read_server(const Section& section, ServerConfig& server) {
  read_url(section, server.url);
  if (const auto name = section.string("tlsServerName")) server.tls_name = *name;
  if (const auto insecure = section.boolean("insecureSkipTLSVerify")) server.insecure = *insecure;
  read_absolute_path(section, "caFile", server.ca_file);
  read_absolute_path(section, "tokenFile", server.token_file);
  read_absolute_path(section, "clientCertFile", server.client_cert);
  read_absolute_path(section, "clientKeyFile", server.client_key);
  read_positive_duration(section, "timeout", server.timeout);
  reject_secrets_in_url(section, server);
  if (server.insecure && !server.ca_file.empty())
    section.add_error("insecureSkipTLSVerify", "makes caFile mean nothing: leave out one of them");
  if (!server.client_key.empty() && server.client_cert.empty())
    section.add_error("clientKeyFile", "needs clientCertFile");
}

void read_kubelet_source(const Section& section, KubeletConfig& kubelet) {
  section.reject_unknown_keys(kKubeletKeys);
  read_server(section, kubelet);
  read_positive_duration(section, "period", kubelet.period);
  if (const auto configz = section.boolean("configz")) kubelet.configz = *configz;
  if (kubelet.configz && kubelet.url.empty())
    section.add_error("configz", "needs url: where the kubelet is");
}

void read_api(const Section& section, ApiConfig& api) {
  section.reject_unknown_keys(kApiKeys);
  read_server(section, api);
  if (const auto after = section.choice<AfterEviction>("afterEviction", kAfterEvictions))
    api.after_eviction = *after;
  if (const auto events = section.boolean("events")) api.events = *events;
  if (const auto conditions = section.boolean("conditions")) api.conditions = *conditions;
  if (const auto taints = section.boolean("taints")) api.taints = *taints;
}

}  // namespace

std::vector<std::string> kubernetes_keys() {
  std::vector<std::string> keys{"runDirectory", "stateDirectory"};
  for (const std::string_view key : kKubeletKeys)
    keys.push_back("kubelet." + std::string(key));
  for (const std::string_view key : kApiKeys)
    keys.push_back("api." + std::string(key));
  return keys;
}

void read_kubernetes(const Section& headroom, Config& config) {
  const auto section = headroom.map("kubernetes");
  if (!section) return;
  section->reject_unknown_keys(kKeys);
  KubernetesConfig& configured = config.kubernetes;
  read_absolute_path(*section, "runDirectory", configured.run_dir);
  read_absolute_path(*section, "stateDirectory", configured.state_dir);
  if (const auto kubelet = section->map("kubelet"))
    read_kubelet_source(*kubelet, configured.kubelet);
  if (const auto api = section->map("api")) read_api(*api, configured.api);
}

}  // namespace headroom::config
