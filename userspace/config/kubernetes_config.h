// SPDX-License-Identifier: Apache-2.0
// KubernetesConfig: headroom.kubernetes, the settings of headroom-kube: where pods come from, and
// which API server is notified of evictions.
#pragma once

#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom::config {

// The server, and how both sides authenticate. Files are read for every request, because tokens and
// certificates are rotated.
struct ServerConfig {
  std::string url;                // url: "https://127.0.0.1:10250"; "": not asked at all
  std::string tls_name;           // tlsServerName: what its certificate is for; "": the URL's host
  bool insecure = false;          // insecureSkipTLSVerify: the server's certificate is not checked
  std::filesystem::path ca_file;  // caFile; empty: the service account's, or the system's
  std::filesystem::path token_file;             // tokenFile; empty: the service account's, or none
  std::filesystem::path client_cert;            // clientCertFile, beside a key; empty: none
  std::filesystem::path client_key;             // clientKeyFile; empty: it is in the same file
  Duration timeout = std::chrono::seconds(10);  // timeout: most for one request, all in all
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

// headroom.kubernetes.kubelet
struct KubeletConfig : ServerConfig {
  Duration period = std::chrono::seconds(10);  // period: how often it is asked for its pods
  bool configz = false;  // configz: its KubeletConfiguration is the base of ours
  friend bool operator==(const KubeletConfig&, const KubeletConfig&) = default;
};

// headroom.kubernetes.api
struct ApiConfig : ServerConfig {
  // afterEviction: how far a pod that was evicted is followed up. Each does what those before it
  // do.
  enum class AfterEviction : std::uint8_t {
    kNone,    // the API server is not notified
    kStatus,  // its status says what a kubelet's would
    kEvict,   // and it is evicted through the eviction subresource, which respects disruption
              // budgets
    kDelete,  // and it is deleted
  };
  AfterEviction after_eviction = AfterEviction::kNone;
  bool events = true;       // events: an Event for each eviction; not with kNone
  bool conditions = false;  // conditions: the node's, under types of our own
  bool taints = false;      // taints: the node's, of pressure
  friend bool operator==(const ApiConfig&, const ApiConfig&) = default;

  // Whether anything is sent to the API server.
  bool needs_api() const { return after_eviction != AfterEviction::kNone || conditions || taints; }
};

struct KubernetesConfig {
  // runDirectory: pods/ (one file a pod), kubelet.yaml (its configz), status.json.
  std::filesystem::path run_dir = "/run/headroom-kube";
  // stateDirectory: what survives a reboot: which evictions were reported.
  std::filesystem::path state_dir = "/var/lib/headroom-kube";
  KubeletConfig kubelet;
  ApiConfig api;
  friend bool operator==(const KubernetesConfig&, const KubernetesConfig&) = default;

  std::filesystem::path pods_dir() const { return run_dir / "pods"; }
  std::filesystem::path status_file() const { return run_dir / "status.json"; }
  std::filesystem::path configz_file() const { return run_dir / "kubelet.yaml"; }
};

}  // namespace headroom::config
