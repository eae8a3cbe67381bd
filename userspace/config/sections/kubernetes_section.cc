// SPDX-License-Identifier: Apache-2.0
#include "config/keys.h"
#include "config/kubelet_keys.h"
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {
namespace {

constexpr auto kKubernetesKeys = std::to_array<std::string_view>(
    {"runDirectory", "stateDirectory", "kubelet", "api", "scheduling", "extender", "metrics"});
constexpr auto kKubeletSectionKeys = std::to_array<std::string_view>(
    {"url", "tlsServerName", "insecureSkipTLSVerify", "caFile", "tokenFile", "clientCertFile",
     "clientKeyFile", "timeout", "period", "configz"});
constexpr auto kApiKeys = std::to_array<std::string_view>(
    {"url", "tlsServerName", "insecureSkipTLSVerify", "caFile", "tokenFile", "clientCertFile",
     "clientKeyFile", "timeout", "afterEviction", "events", "conditions", "taints"});

constexpr auto kSchedulingKeys =
    std::to_array<std::string_view>({"softTaints", "conditions", "statusAnnotation",
                                     "batchResources", "contentionThreshold", "shortageWithin"});

constexpr auto kExtenderKeys = std::to_array<std::string_view>({"listen", "certFile", "keyFile"});
constexpr auto kMetricsServerKeys =
    std::to_array<std::string_view>({"listen", "certFile", "keyFile"});

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
  section.reject_unknown_keys(kKubeletSectionKeys);
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

void read_scheduling(const Section& section, SchedulingConfig& scheduling) {
  section.reject_unknown_keys(kSchedulingKeys);
  if (const auto taints = section.boolean("softTaints")) scheduling.soft_taints = *taints;
  if (const auto conditions = section.boolean("conditions")) scheduling.conditions = *conditions;
  if (const auto annotation = section.boolean("statusAnnotation"))
    scheduling.annotation = *annotation;
  if (const auto batch = section.boolean("batchResources")) scheduling.batch_resources = *batch;
  if (const auto share = read_percentage(section, "contentionThreshold", "20%"))
    scheduling.contention_threshold = *share;
  read_positive_duration(section, "shortageWithin", scheduling.shortage_within);
}

// A host name may be an address of any network.
bool is_loopback(std::string_view listen) {
  return listen.starts_with("127.") || listen.starts_with("[::1]:");
}

void read_certificate_files(const Section& section, std::filesystem::path& cert_file,
                            std::filesystem::path& key_file) {
  read_absolute_path(section, "certFile", cert_file);
  read_absolute_path(section, "keyFile", key_file);
  if (cert_file.empty() != key_file.empty())
    section.add_error(cert_file.empty() ? "keyFile" : "certFile",
                      cert_file.empty() ? "needs certFile" : "needs keyFile");
}

void read_extender(const Section& section, ExtenderConfig& extender) {
  section.reject_unknown_keys(kExtenderKeys);
  read_listen(section, extender.listen);
  read_certificate_files(section, extender.cert_file, extender.key_file);
  if (extender.listen.empty())
    section.add_error("listen", "expected HOST:PORT such as 127.0.0.1:9752");
  else if (extender.cert_file.empty() && !is_loopback(extender.listen))
    section.add_error("listen", "beyond the loopback needs certFile and keyFile");
}

void read_metrics_server(const Section& section, MetricsServerConfig& metrics) {
  section.reject_unknown_keys(kMetricsServerKeys);
  read_listen(section, metrics.listen);
  read_certificate_files(section, metrics.cert_file, metrics.key_file);
}

constexpr std::string_view kApiVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kKind = "KubeletConfiguration";

void require_constant(const Section& document, std::string_view key, std::string_view wanted) {
  const auto found = document.string(key);
  if (found && *found != wanted)
    document.add_error(key, "expected " + std::string(wanted) + ", found \"" + *found + "\"");
  if (!document.has(key))
    document.add_error_at(document.line(),
                          "missing " + std::string(key) + ": expected " + std::string(wanted));
}

// The keys of the top level that headroom reads: the first part of each path.
std::vector<std::string_view> used_keys() {
  std::vector<std::string_view> used{"apiVersion", "kind"};
  for (const KeyDescription& key : all_keys()) {
    const std::string_view top = key.path.substr(0, key.path.find('.'));
    if (used.back() != top) used.push_back(top);
  }
  return used;
}

// A kubelet of another version has other keys: unknown ones are warnings.
void report_unknown_keys(const Section& document, Diagnostics& warnings) {
  const auto headroom_names = headroom_keys();
  std::vector<std::string_view> known(kubelet_keys().begin(), kubelet_keys().end());
  known.push_back("headroom");
  for (const yaml::Entry& entry : document.entries()) {
    const bool misplaced =
        !is_kubelet_key(entry.key) &&
        std::find(headroom_names.begin(), headroom_names.end(), entry.key) != headroom_names.end();
    if (!misplaced) continue;
    document.add_error_at(entry.line, "unknown key " + entry.key + ": it belongs under headroom:");
    known.push_back(entry.key);
  }
  document.warn_of_unknown_keys(known, used_keys(), warnings);
}

// A map that is none holds no grace period for anyone: all are unread.
LocatedValue invalid_grace_periods(const Section& document, const std::string& file,
                                   const std::optional<LocatedValue>& soft) {
  LocatedValue configured{file, document.line_of("evictionSoftGracePeriod"), {}, {}};
  if (soft)
    for (const LocatedText& word : soft->strings)
      configured.unreadable_keys.push_back(word.key);
  return configured;
}

void read_eviction(const Section& document, const std::string& file, Config& config,
                   EvictionSettings& eviction) {
  eviction.hard = read_located_map(document, file, "evictionHard");
  eviction.soft = read_located_map(document, file, "evictionSoft");
  eviction.soft_grace = read_located_map(document, file, "evictionSoftGracePeriod");
  if (!eviction.soft_grace && document.has("evictionSoftGracePeriod"))
    eviction.soft_grace = invalid_grace_periods(document, file, eviction.soft);
  eviction.min_reclaim = read_located_map(document, file, "evictionMinimumReclaim");
  if (const auto merge = document.boolean("mergeDefaultEvictionSettings"))
    eviction.merge_defaults = *merge;
  eviction.enforce_node_allocatable = read_located_list(document, file, "enforceNodeAllocatable");

  if (const auto isolation = document.boolean("localStorageCapacityIsolation"))
    config.policy.local_storage_isolation = *isolation;

  using Int32 = std::numeric_limits<std::int32_t>;
  if (const auto limit = document.integer("evictionMaxPodGracePeriod", Int32::min(), Int32::max()))
    config.policy.max_pod_grace = std::chrono::seconds(*limit);
  if (const auto period = document.duration("evictionPressureTransitionPeriod")) {
    if (*period < Duration::zero())
      document.add_error("evictionPressureTransitionPeriod", "must not be negative");
    // The kubelet does not distinguish zero from unset.
    else if (*period > Duration::zero())
      config.policy.pressure_transition = *period;
  }
}

void read_cgroups(const Section& document, Config& config) {
  auto& system = config.system_cgroups;
  system.kubelet = document.string("kubeletCgroups").value_or("");
  system.misc = document.string("systemCgroups").value_or("");
}

}  // namespace

std::vector<std::string> kubernetes_keys() {
  std::vector<std::string> keys{"runDirectory", "stateDirectory"};
  for (const std::string_view key : kKubeletSectionKeys)
    keys.push_back("kubelet." + std::string(key));
  for (const std::string_view key : kApiKeys)
    keys.push_back("api." + std::string(key));
  for (const std::string_view key : kSchedulingKeys)
    keys.push_back("scheduling." + std::string(key));
  for (const std::string_view key : kExtenderKeys)
    keys.push_back("extender." + std::string(key));
  for (const std::string_view key : kMetricsServerKeys)
    keys.push_back("metrics." + std::string(key));
  return keys;
}

void read_kubernetes(const Section& headroom, Config& config) {
  const auto section = headroom.map("kubernetes");
  if (!section) return;
  section->reject_unknown_keys(kKubernetesKeys);
  KubernetesConfig& configured = config.kubernetes;
  read_absolute_path(*section, "runDirectory", configured.run_dir);
  read_absolute_path(*section, "stateDirectory", configured.state_dir);
  if (const auto kubelet = section->map("kubelet"))
    read_kubelet_source(*kubelet, configured.kubelet);
  if (const auto api = section->map("api")) read_api(*api, configured.api);
  if (const auto scheduling = section->map("scheduling"))
    read_scheduling(*scheduling, configured.scheduling);
  if (const auto extender = section->map("extender")) read_extender(*extender, configured.extender);
  if (const auto metrics = section->map("metrics"))
    read_metrics_server(*metrics, configured.metrics);
}

void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionSettings& eviction, ReservedSettings& reserves, PodSizingSettings& sizing,
                  Diagnostics& warnings) {
  require_constant(document, "apiVersion", kApiVersion);
  require_constant(document, "kind", kKind);
  report_unknown_keys(document, warnings);
  read_eviction(document, file, config, eviction);
  read_cgroups(document, config);
  read_reserved_settings(document, file, reserves);
  read_sizing(document, file, sizing, warnings);
  read_node(document, config, warnings);
}

}  // namespace headroom::config
