// SPDX-License-Identifier: Apache-2.0
// DbusService: io.headroom.Headroom1 on the system bus, as io.headroom.Headroom1(5) describes it.
#pragma once

#include "report/dbus/polkit_check.h"
#include "report/eviction/eviction.h"
#include "report/view/node_view.h"
#include "report/view/published_views.h"

#include <headroom/result.h>

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

// BusProperties: the node's properties on the bus. Pure.

struct BusProperties {
  std::string_view mode;
  std::array<bool, kConditions> conditions{};
  // The source of cgroup readings: "bpf", "files", both: "hybrid"; "" before the first.
  std::string_view source;
  friend bool operator==(const BusProperties&, const BusProperties&) = default;
};

BusProperties properties_of(const NodeView& node);

// The names, on the bus, of the properties that differ.
std::vector<const char*> changed_properties(const BusProperties& before, const BusProperties& now);

}  // namespace headroom::report

struct sd_event;

namespace headroom::report {

inline constexpr const char* kBusName = "io.headroom.Headroom1";
inline constexpr const char* kBusPath = "/io/headroom/Headroom1";
inline constexpr const char* kBusInterface = "io.headroom.Headroom1";

using AdmitFunction = std::function<Result<std::string>(const std::string& manifest)>;

struct DbusSetup {
  std::shared_ptr<const PublishedViews> views;
  QosOf qos_of = nullptr;
  // Each returns the daemon's answer as JSON, or an error, whose text is sent to the caller. Called
  // on the service's thread. Empty: the method is not available.
  AdmitFunction admit{}, admit_to_start{};
  std::function<Result<std::string>(const std::vector<std::string>& edits, bool overwrite)> taint{};
  std::function<Result<std::string>()> cpus{};
  std::function<Result<std::string>()> memory{};
  std::function<FutureReply(bool dry_run)> repack{};
  // Takes ownership of the descriptor.
  std::function<Result<std::string>(int pipe, std::chrono::seconds length)> record{};
  std::function<Result<std::string>()> config{};
  std::filesystem::path kubernetes{};  // headroom-kube's status file
  uid_t allowed_uid = 0;               // the user that may change things without polkit
};

// Limit of the text in one call. Any local user may call Admit, the bus passes on messages of up to
// 128 MiB, and parsing takes many times the size of the text in locked memory.
inline constexpr std::size_t kMaxRequestBytes = 1u << 20;

inline constexpr const char* kBusRefused = "io.headroom.Headroom1.Refused";

// The arguments of the signal Evicted.
struct EvictedSignal {
  std::string pod;  // "default/hog"
  std::string uid;
  std::string reason;   // the eviction signal: "memory.available"; or "taint"
  std::string message;  // the kubelet's message on the pod
  std::uint64_t decided_at_ns = 0;
};
EvictedSignal evicted_signal_of(const Eviction& eviction);

// Used only on the thread that runs `event`. Status() renders the whole table, so that thread
// should not be the daemon's loop (see DbusThread).
class DbusService {
 public:
  static Result<std::unique_ptr<DbusService>> open(sd_event* event, DbusSetup setup);
  ~DbusService();
  DbusService(const DbusService&) = delete;
  DbusService& operator=(const DbusService&) = delete;

  Result<> evicted(const EvictedSignal& signal);
  // Emits PropertiesChanged for the properties that differ from those last sent.
  Result<> emit_properties_changed();
  // False after the bus disconnected: close this and open another.
  bool connected() const;

 private:
  struct Connection;
  explicit DbusService(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace headroom::report
