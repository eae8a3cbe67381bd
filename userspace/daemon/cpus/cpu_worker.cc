// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/cpu_worker.h"

#include "act/cpus/cpuset_writer.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/sources/runtime_container_names.h"
#include "judge/allocatable/node_allocatable.h"
#include "observe/node/capacity.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Between turns. While another program undoes every repair, the gap grows: two writers in conflict
// must not use up a CPU, and the last write is still corrected well within a second.
constexpr milliseconds kMinGap{10}, kMaxGap{400};
// How often new watches may require another pass at once.
constexpr int kMaxRounds = 4;

}  // namespace

CpuManagerOptions cpu_manager_options_of(const config::Config& config) {
  CpuManagerOptions options{.cpus = config.cpus};
  using Mode = config::CpusConfig::Mode;
  // In mode observe nothing is written.
  if (config.policy.mode == headroom::Mode::kObserve && options.cpus.mode == Mode::kEnforce)
    options.cpus.mode = Mode::kObserve;
  for (const Reserve* const reserve : {&config.reserved.kube, &config.reserved.system})
    if (reserve->amounts.cpu) options.reserved.count += reserve->amounts.cpu->count;
  return options;
}

config::Diagnostics cpu_config_errors(const config::Config& config) {
  const bool off = config.cpus.mode == config::CpusConfig::Mode::kOff ||
                   config.cpus.policy == config::CpusConfig::Policy::kNone;
  if (off) return {};
  const auto machine = observe::read_topology();
  if (!machine) return {{"", 0, "cpuManagerPolicy: " + machine.error().what}};
  config::Diagnostics diagnostics;
  for (const std::string& what :
       machine_config_errors(cpu_manager_options_of(config), machine->topology))
    diagnostics.push_back({"", 0, "cpuManagerPolicy: " + what});
  return diagnostics;
}

config::Diagnostics memory_config_errors(const config::Config& config, const Amounts& capacity,
                                         const MemorySizes& sizes) {
  config::Diagnostics diagnostics;
  const auto node = node_allocatable(capacity, config.reserved, config.policy.thresholds);
  if (!node) {
    for (const ReservationError& error : node.error())
      diagnostics.push_back({"", 0, "memoryManagerPolicy: " + error.what});
    return diagnostics;
  }
  ResourceList reservation;
  if (const auto& memory = node->reservation.memory)
    reservation.emplace("memory", Quantity::of(memory->count, Quantity::Format::kBinarySI));
  for (const std::string& what :
       find_reservation_faults(sizes, config.cpus.reserved_memory, reservation))
    diagnostics.push_back(
        {"", 0,
         "reservedMemory: " + what +
             ". The reservations of all NUMA nodes together must be kubeReserved, "
             "systemReserved and the hard eviction threshold of memory"});
  return diagnostics;
}

config::Diagnostics memory_config_errors(const config::Config& config, const Amounts& capacity) {
  using Policy = config::CpusConfig::MemoryManagerPolicy;
  if (config.cpus.mode == config::CpusConfig::Mode::kOff ||
      config.cpus.memory_policy == Policy::kNone)
    return {};
  const auto sizes = observe::read_numa_memory();
  if (!sizes) return {{"", 0, "memoryManagerPolicy: " + sizes.error().what}};
  return memory_config_errors(config, capacity, *sizes);
}

CpuManager::Setup CpuWorker::setup_of(std::shared_ptr<const KubeletContainerNames> kubelet_names,
                                      const std::filesystem::path& cgroup_root,
                                      const std::string& pods_cgroup,
                                      const std::filesystem::path& state_dir) {
  const auto writer = std::make_shared<act::CpusetWriter>(cgroup_root);
  const auto names = std::make_shared<RuntimeContainerNames>(std::move(kubelet_names));
  return {
      .cpusets = {.cgroup_root = cgroup_root,
                  .write = [writer](const SeenCgroup& cgroup,
                                    const CpuSet& cpus) { return writer->write(cgroup, cpus); },
                  .pause = [] { std::this_thread::sleep_for(milliseconds(5)); }},
      .remove_settings =
          [writer](const std::string& path) { return writer->remove_settings(path); },
      .state_dir = state_dir,
      .pods_cgroup = pods_cgroup,
      .identify = [names](std::string_view runtime_id) { return names->find(runtime_id); },
      .write_nodes = [writer](const SeenCgroup& cgroup,
                              NodeSet nodes) { return writer->write_nodes(cgroup, nodes); },
  };
}

CpuWorker::CpuWorker(const std::filesystem::path& cgroup_root, const std::string& pods_cgroup,
                     const std::filesystem::path& state_dir, CpuManagerOptions options,
                     std::vector<Pod> manifests,
                     std::shared_ptr<const KubeletContainerNames> kubelet_names,
                     std::shared_ptr<report::PublishedCpusView> cpus_view,
                     std::shared_ptr<RepackQueue> queue)
    : manager_(setup_of(std::move(kubelet_names), cgroup_root, pods_cgroup, state_dir), options),
      watch_(cgroup_root),
      cpus_view_(std::move(cpus_view)),
      queue_(std::move(queue)),
      period_(options.cpus.reconcile_period),
      gap_(kMinGap),
      wake_(open_event_fd()) {
  // Before the first pass: a pod that runs on exclusive CPUs keeps them only if it is known.
  manager_.set_declared_pods(std::move(manifests));
  queue_->open([this] { wake(); });
  thread_ = std::thread([this] { run(); });
}

CpuWorker::~CpuWorker() {
  queue_->close();
  post([](Inbox& inbox) { inbox.stop = true; });
  thread_.join();
  cpus_view_->clear();
}

void CpuWorker::post(const std::function<void(Inbox&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    change(inbox_);
  }
  wake();
}

void CpuWorker::wake() const {
  signal_event_fd(wake_.get());
}

void CpuWorker::reconfigure(CpuManagerOptions options) {
  post([&](Inbox& inbox) { inbox.options = std::move(options); });
}

void CpuWorker::set_declared_pods(std::vector<Pod> manifests) {
  post([&](Inbox& inbox) { inbox.manifests = std::move(manifests); });
}

// False: a stop was requested.
bool CpuWorker::take_inbox() {
  Inbox inbox;
  {
    const std::lock_guard lock(mutex_);
    if (inbox_.stop) return false;
    std::swap(inbox, inbox_);
  }
  if (inbox.options) {
    period_ = inbox.options->cpus.reconcile_period;
    manager_.reconfigure(std::move(*inbox.options));
  }
  if (inbox.manifests) manager_.set_declared_pods(std::move(*inbox.manifests));
  return true;
}

// Watches are added before the last read of what they watch, so that no change is missed.
void CpuWorker::reconcile_once() {
  if (manager_.is_off()) return cpus_view_->clear();
  const std::uint64_t repaired = manager_.repaired();
  int rounds = 0;
  do
    manager_.reconcile();
  while (watch_.watch_tree(manager_.tree()) && ++rounds < kMaxRounds);
  gap_ = manager_.repaired() == repaired ? kMinGap : std::min(2 * gap_, kMaxGap);
  due_ = Clock::now() + period_;
  cpus_view_->publish(manager_.view());
}

void CpuWorker::run_repacks() {
  for (RepackRequest& request : queue_->take_all()) {
    const auto view = manager_.repack(request.dry_run);
    if (view && !request.dry_run) cpus_view_->publish(manager_.view());
    request.result.set_value(view ? Result<std::string>(report::repack_json(*view))
                                  : Result<std::string>(tl::make_unexpected(view.error())));
  }
}

// True: there is something to check.
bool CpuWorker::wait_for_change() {
  std::array<pollfd, 2> events{{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                {.fd = watch_.descriptor(), .events = POLLIN, .revents = 0}}};
  const int ready = ::poll(events.data(), events.size(), static_cast<int>(kDriftPeriod.count()));
  clear_event_fd(wake_.get());
  watch_.drain();
  return ready > 0 || (!manager_.is_off() && (Clock::now() >= due_ || manager_.drifted()));
}

void CpuWorker::run() {
  report::set_thread_name("cpus");
  bool reconcile_now = true;
  for (bool more = true; more;) {
    log::log_exceptions("CPU pinning", [&] {
      more = take_inbox();
      if (more && reconcile_now) reconcile_once();
      if (more) run_repacks();
    });
    if (!more) return;
    if (std::exchange(reconcile_now, true)) std::this_thread::sleep_for(gap_);
    log::log_exceptions("watch the CPUs", [&] { reconcile_now = wait_for_change(); });
  }
}

}  // namespace headroom::daemon
