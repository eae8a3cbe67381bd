// SPDX-License-Identifier: Apache-2.0
#include "daemon/servers.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/config/system_containers.h"
#include "daemon/sources/runtime_container_names.h"
#include "judge/admission/pod_admission.h"
#include "judge/resources/pod_resources.h"
#include "manifest/manifest_reader.h"
#include "observe/bpf/bpf_costs.h"
#include "observe/node/capacity.h"
#include "observe/node/cpu_topology.h"
#include "report/metrics/kube_metrics.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics_cpus.h"

#include <unistd.h>

#include <array>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using Json = nlohmann::ordered_json;

Json refusals_json(const std::vector<AdmitFailure>& refusals) {
  Json list = Json::array();
  for (const AdmitFailure& refusal : refusals) {
    Json entry{{"reason", refusal.reason}, {"by", name(refusal.by)}, {"message", refusal.message}};
    if (const auto& shortage = refusal.shortage) {
      entry["resource"] = shortage->resource;
      entry["requested"] = quantity_of(shortage->resource, shortage->requested).canonical();
      entry["used"] = quantity_of(shortage->resource, shortage->used).canonical();
      entry["capacity"] =
          shortage->capacity
              ? Json(quantity_of(shortage->resource, *shortage->capacity).canonical())
              : Json(nullptr);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json amounts_json(const ResourceList& list) {
  Json json = Json::object();
  for (const auto& [resource, quantity] : list)
    json[resource] = quantity.canonical();
  return json;
}

Json taints_json(const std::vector<Taint>& taints) {
  Json list = Json::array();
  for (const Taint& taint : taints)
    list.push_back(to_string(taint));
  return list;
}

Json admission_json(const Pod& pod, const NodeState& node, const Admission& admission) {
  Json preempted = Json::array();
  for (const std::size_t index : admission.preempted)
    preempted.push_back({{"namespace", node.pods[index].pod_namespace},
                         {"name", node.pods[index].name},
                         {"uid", node.pods[index].uid},
                         {"qos", name(node.pods[index].qos)},
                         {"priority", node.pods[index].priority}});
  return {{"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"admitted", admission.admitted},
          {"refusals", refusals_json(admission.refusals)},
          {"resolved_by_preemption", refusals_json(admission.resolved_by_preemption)},
          {"preemption_victims", std::move(preempted)},
          {"untolerated_preferred_taints", taints_json(admission.untolerated_preferred)}};
}

// A limit, since any user may call this: each pod is compared with all running pods.
constexpr std::size_t kMaxPods = 1'000;

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

void count(const Admission& admission, report::AdmissionCounts& counts) {
  if (!admission.admitted) counts.count_rejection(admission.refusals.front().reason);
  if (admission.preempted.empty()) return;
  const auto& shortage = admission.resolved_by_preemption.front().shortage;
  counts.count_preemptions(shortage ? shortage->resource : "", admission.preempted.size());
}

// `counts` is null if nothing is to be counted.
Result<std::string> answer_admission(const report::NodeStatusRef& status,
                                     const std::string& manifest, report::AdmissionCounts* counts) {
  if (!status) return failure("headroomd has not read the node yet; try again");
  const observe::Manifests manifests =
      observe::parse_manifests(manifest, "manifest", {.max_pods = kMaxPods});
  std::vector<std::string> diagnostics;
  for (const config::Diagnostic& diagnostic : manifests.diagnostics)
    diagnostics.push_back(to_string(diagnostic));
  if (diagnostics.empty() && manifests.pods.empty())
    diagnostics.emplace_back("there is no Pod in it");
  if (!diagnostics.empty()) return failure(join_lines(diagnostics));
  Json pods = Json::array();
  for (const Pod& pod : manifests.pods) {
    const Admission admission = admit(pod, status->state);
    if (counts) count(admission, *counts);
    pods.push_back(admission_json(pod, status->state, admission));
  }
  return to_json_text(Json{{"node", status->state.name},
                           {"allocatable", amounts_json(status->allocatable)},
                           {"pods", std::move(pods)}});
}

}  // namespace

Result<std::string> admit_json(const report::NodeStatusRef& status, const std::string& manifest) {
  return answer_admission(status, manifest, nullptr);
}

Result<std::string> admit_to_start_json(const report::NodeStatusRef& status,
                                        const std::string& manifest,
                                        report::AdmissionCounts& counts) {
  return answer_admission(status, manifest, &counts);
}

Result<std::string> taint_json(TaintStore& store, const std::vector<std::string>& edits,
                               bool overwrite) {
  std::vector<TaintEdit> parsed;
  std::vector<std::string> errors;
  for (const std::string& text : edits) {
    auto edit = parse_taint_edit(text);
    if (edit)
      parsed.push_back(std::move(*edit));
    else
      errors.push_back(edit.error().what);
  }
  if (!errors.empty()) return failure(join_lines(errors));
  const auto taints = store.edit(parsed, overwrite);
  if (!taints) return tl::make_unexpected(taints.error());
  return to_json_text(Json{{"taints", taints_json(*taints)}});
}

Result<std::string> cpus_response_json(const report::PublishedCpusView& cpus_view) {
  if (const auto view = cpus_view.latest()) return cpus_json(*view);
  const auto machine = observe::read_topology();
  if (!machine) return tl::make_unexpected(machine.error());
  const auto places = machine->topology.places();
  return report::cpus_json({.mode = "off",
                            .policy = "none",
                            .places = {places.begin(), places.end()},
                            .shared = machine->topology.cpus(),
                            .offline = machine->offline,
                            .isolated = machine->isolated,
                            .nohz_full = machine->nohz_full});
}

Result<std::string> memory_response_json(const report::PublishedCpusView& cpus_view) {
  const auto view = cpus_view.latest();
  if (view && view->memory) return report::memory_json(*view->memory);
  const auto sizes = observe::read_numa_memory();
  if (!sizes) return tl::make_unexpected(sizes.error());
  return report::memory_json({.mode = view ? view->mode : "off",
                              .policy = "None",
                              .nodes = MemoryPolicy(*sizes, {}).initial().machine});
}

NodeStatusWriter::NodeStatusWriter(std::filesystem::path path, std::chrono::milliseconds min_period)
    : path_(std::move(path)), min_period_(min_period), thread_([this] { run(); }) {}

NodeStatusWriter::~NodeStatusWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void NodeStatusWriter::submit(report::NodeStatusRef status) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(status);
  }
  changed_.notify_one();
}

void NodeStatusWriter::run() {
  report::set_thread_name("status");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return next_ || stop_; });
    if (!next_) return;
    const report::NodeStatusRef status = std::exchange(next_, nullptr);
    lock.unlock();
    write(*status);
    lock.lock();
    changed_.wait_for(lock, min_period_, [this] { return stop_; });
  }
}

void NodeStatusWriter::write(const report::NodeStatus& status) {
  Result<> result;
  try {
    constexpr mode_t kReadable = 0644;
    // Bytes of a name that are not UTF-8 are replaced.
    const std::string text = to_json_text(node_json(status), 1);
    result = write_atomically(path_, text + "\n", {.mode = kReadable});
  } catch (const std::exception& e) {
    result = failure("write " + path_.string() + ": " + e.what());
  }
  ++(result ? written_ : failed_);
  if (!result && !failure_logged_)
    log::error("{}: the node's status file is out of date", result.error().what);
  failure_logged_ = !result;
}

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// The names by which HTTP clients may address this host, besides its IP addresses.
std::vector<std::string> host_names(const config::Config& config, const std::string& node) {
  std::vector<std::string> names = config.host_names;
  names.push_back(host_name());
  names.push_back(node);
  names.push_back(config.listen.substr(0, config.listen.rfind(':')));
  return names;
}

void add_program_families(const observe::BpfCosts& programs, report::Families& families) {
  auto run = report::MetricFamilyBuilder::counter(
      "headroom_bpf_run_seconds_total",
      "Run time of headroomd's BPF programs, counted while kernel.bpf_stats_enabled is set.");
  auto runs = report::MetricFamilyBuilder::counter(
      "headroom_bpf_runs_total",
      "Runs of headroomd's BPF programs, counted while kernel.bpf_stats_enabled is set.");
  for (const observe::BpfCost& each : programs.read()) {
    run.add(seconds_of(each.run), {{"program", each.program}});
    runs.add(each.runs, {{"program", each.program}});
  }
  run.append_to(families);
  runs.append_to(families);
}

report::CgroupScope metric_scope(config::MetricScope scope) {
  switch (scope) {
    case config::MetricScope::kPods:
      return report::CgroupScope::kPods;
    case config::MetricScope::kContainers:
      return report::CgroupScope::kContainers;
    case config::MetricScope::kAll:
      return report::CgroupScope::kAll;
  }
  return report::CgroupScope::kAll;
}

std::vector<report::FilesystemSpaces::Place> places_of(const observe::Filesystems& filesystems) {
  std::vector<report::FilesystemSpaces::Place> places{
      {Signal::kNodeFsAvailable, filesystems.nodefs}};
  if (filesystems.imagefs) places.push_back({Signal::kImageFsAvailable, *filesystems.imagefs});
  if (filesystems.containerfs)
    places.push_back({Signal::kContainerFsAvailable, *filesystems.containerfs});
  return places;
}

}  // namespace

std::shared_ptr<report::Router> make_router(
    const config::Config& config, std::shared_ptr<report::PublishedViews> views,
    std::shared_ptr<report::PublishedCpusView> cpus,
    std::shared_ptr<const report::AdmissionCounts> admissions,
    std::shared_ptr<const KubeletContainerNames> kubelet_names,
    std::shared_ptr<const report::ReloadStatus> reload, const observe::Filesystems& filesystems,
    std::string cgroup_root) {
  const auto names = std::make_shared<RuntimeContainerNames>(std::move(kubelet_names));
  const auto programs =
      std::make_shared<const observe::BpfCosts>(observe::BpfCosts::of_this_process());
  const auto host = std::make_shared<const report::HostReaders>(
      report::HostReaders{.network = report::NetworkReader(cgroup_root),
                          .processes = report::ProcessReader(cgroup_root),
                          .filesystems = report::FilesystemSpaces(places_of(filesystems))});
  const std::string node = host_name();
  return std::make_shared<report::Router>(
      report::MetricsSetup{.views = views,
                           .container_names = config.compatibility_metrics,
                           .old_names = config.metrics.old_names,
                           .scope = metric_scope(config.metrics.cgroups),
                           .exclude = config.metrics.exclude,
                           .now = &observe::now,
                           .names = names,
                           .qos_of = &qos_class,
                           .host = host,
                           .node_name = node,
                           .extra_families =
                               [programs, cpus, admissions, reload,
                                kube = config.kubernetes.status_file()](report::Families& all) {
                                 report::add_reload_families(*reload, all);
                                 add_program_families(*programs, all);
                                 admissions->append_to(all);
                                 report::add_kubernetes_families(kube, all);
                                 if (const auto view = cpus->latest())
                                   report::add_cpu_families(*view, all);
                               }},
      report::SummarySetup{.views = views,
                           .node_name = node,
                           .system_containers = system_containers(config),
                           .names = names,
                           .cgroup_root = std::move(cgroup_root),
                           .host = host},
      report::PageRouterSetup{.names = host_names(config, node),
                              .cpus =
                                  [cpus] {
                                    const auto view = cpus->latest();
                                    return view ? report::cpus_json(*view) : std::string("null");
                                  },
                              .memory =
                                  [cpus] {
                                    const auto view = cpus->latest();
                                    return view && view->memory ? report::memory_json(*view->memory)
                                                                : std::string("null");
                                  },
                              .kubernetes = config.kubernetes.status_file()});
}

void Servers::start(const config::Config& config, report::DbusSetup bus,
                    std::shared_ptr<report::Router> router) {
  if (!config.node_status.empty())
    node_status_writer_ = std::make_unique<NodeStatusWriter>(config.node_status);
  auto thread = report::DbusThread::start(std::move(bus));
  if (thread)
    bus_ = std::move(*thread);
  else
    log::warning("D-Bus: {}; headroomctl cannot reach this daemon", thread.error().what);
  if (!router) return;
  auto http = report::HttpServer::open(config.listen, std::move(router), {}, heartbeat_);
  if (http)
    http_ = std::move(*http);
  else
    log::error("{}; metrics are not served", http.error().what);
}

}  // namespace headroom::daemon
