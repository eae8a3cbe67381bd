// SPDX-License-Identifier: Apache-2.0
#include "report/sample.h"

#include "report/status/status_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace headroom::test {

using namespace std::chrono_literals;
using namespace headroom::literals;

std::shared_ptr<Pod> sample_pod(const std::string& name, QosClass qos, std::int32_t priority) {
  auto pod = std::make_shared<Pod>();
  pod->name = name;
  pod->uid = "uid-" + name;
  pod->declared_qos = qos;
  pod->priority = priority;
  return pod;
}

hr_record full_record(std::uint64_t id, std::uint64_t parent) {
  hr_record record = unknown_record(id, parent);
  record.populated = 1;
  auto* fields = reinterpret_cast<hr_u64*>(&record);
  constexpr std::size_t kFirstField = 3;  // after id, parent_id, valid and populated
  for (std::size_t i = kFirstField; i < sizeof(record) / sizeof(hr_u64); ++i)
    fields[i] = id * 1'000'000'000 + i * 1'000'000;
  record.inactive_file = 1'000'000;
  record.valid = (1 << HR_GROUPS) - 1;
  return record;
}

std::string_view SampleNames::path_of(CgroupId id) const {
  const auto it = paths.find(id.value);
  return it == paths.end() ? std::string_view() : it->second;
}

// Nothing is known of it but that it has a process.
static hr_record silent_record(std::uint64_t id, std::uint64_t parent) {
  hr_record record = unknown_record(id, parent);
  record.populated = 1;
  return record;
}

// So many of less than 1 ms, and so many of up to 128 ms.
hr_waits sample_waits(std::uint64_t ns, hr_u32 brief, hr_u32 longer) {
  hr_waits waits{};
  waits.ns = ns;
  waits.count = brief + longer;
  waits.buckets[10] = brief;
  waits.buckets[17] = longer;
  return waits;
}

CgroupTable sample_cgroups() {
  SampleNames names;
  const std::string pods = "/kubepods.slice";
  names.paths = {{1, "/"},
                 {2, pods},
                 {3, pods + "/kubepods-poduid_hog.slice"},
                 {4, pods + "/kubepods-poduid_hog.slice/app.service"},
                 {5, pods + "/kubepods-poduid_web.slice"},
                 {6, pods + "/kubepods-poduid_quiet.slice"}};
  std::vector<hr_record> records{full_record(3, 2),   full_record(4, 3),   full_record(5, 2),
                                 silent_record(6, 2), silent_record(7, 2), silent_record(1, 0),
                                 silent_record(2, 1)};
  records[2].valid &= ~static_cast<hr_u32>(HR_PSI);
  records[2].memory_max = HR_NO_LIMIT;
  records[2].cpu_weight = 39;
  auto hog = sample_pod("hog", QosClass::kBestEffort);
  hog->containers.emplace_back().name = "app";
  hog->ignored_fields = {"spec.tolerations[0].operator: expected Exists, found \"New\""};
  const std::vector<PodReading> readings{
      {hog, CgroupId{3}, &records[0], 0_B, false},
      {sample_pod("web", QosClass::kBurstable, 100), CgroupId{5}, &records[2], 512_MiB, false},
      {sample_pod("quiet", QosClass::kGuaranteed), CgroupId{6}, &records[3], 1_GiB, true}};
  Snapshot snapshot;
  snapshot.at = sample_at(9'500);
  snapshot.cgroups = records;
  snapshot.pods = readings;
  // The hog's container waited at its own limit, and once for the node; a gone one as well.
  const std::vector<std::uint64_t> waited{4, 99};
  std::vector<hr_stalls> stalls(2);
  stalls[0].causes[HR_STALL_LIMIT] = sample_waits(2'500'000'000, 90, 10);
  stalls[0].causes[HR_STALL_GLOBAL] = sample_waits(1'000'000, 0, 1);
  stalls[1].causes[HR_STALL_GLOBAL] = sample_waits(1'000'000, 0, 1);
  snapshot.waits.stalls = ByCgroup<hr_stalls>{waited, stalls};
  const std::vector<std::uint64_t> throttled{5};
  const std::vector<hr_throttles> throttles{
      {.waits = sample_waits(720'000'000, 0, 8), .any_ns = 720'000'000, .any_since = 0}};
  snapshot.waits.throttles = ByCgroup<hr_throttles>{throttled, throttles};
  const std::vector<std::uint64_t> pods_that_waited{3, 5};
  std::vector<CpuWaits> cpu_waits(2);
  cpu_waits[0][CpuWaitCause::kQuota] = 1'500'000'000;
  cpu_waits[0][CpuWaitCause::kNode] = 250'000'000;
  cpu_waits[1][CpuWaitCause::kWeight] = 40'000'000;
  snapshot.waits.cpu = ByCgroup<CpuWaits>{pods_that_waited, cpu_waits};
  const std::vector<WaitPair> cpu_pairs{{CgroupId{3}, CgroupId{5}, 30'000'000},
                                        {CgroupId{0}, CgroupId{3}, 20'000'000},
                                        {CgroupId{99}, CgroupId{3}, 10'000'000}};
  snapshot.waits.cpu_pairs = cpu_pairs;
  CgroupTable table;
  fill(table, nullptr, snapshot, &names);
  return table;
}

namespace {

report::ThresholdView threshold(Signal signal, Duration grace, std::optional<std::int64_t> limit,
                                std::optional<std::int64_t> available) {
  report::ThresholdView view;
  view.signal = signal;
  view.grace = grace;
  view.limit = limit;
  view.available = available;
  return view;
}

}  // namespace

NodeView sample_node() {
  NodeView node;
  node.at = sample_at(10'000);
  node.mode = Mode::kEnforce;
  of(node.observations, Signal::kMemoryAvailable) =
      Observation{(200_MiB).count, (4_GiB).count, sample_at(9'999)};
  of(node.observations, Signal::kCpuPressure) = Observation{880'000, 1'000'000, sample_at(9'000)};
  node.thresholds = {threshold(Signal::kMemoryAvailable, 0s, (100_MiB).count, (200_MiB).count),
                     threshold(Signal::kMemoryAvailable, 90s, (300_MiB).count, (200_MiB).count),
                     threshold(Signal::kNodeFsAvailable, 0s, std::nullopt, std::nullopt)};
  node.thresholds[0].time_to = 2500ms;
  node.thresholds[1].below_since = sample_at(8'000);
  node.conditions[0] = true;
  node.cgroups = 7;
  node.swept_at = sample_at(9'500);
  node.counters.evictions[0] = {3, 1, 2, 5};
  node.counters.stats_age[0].observe(2ms);
  node.counters.detect_to_decide.observe(2ms);
  node.counters.crossing_to_decide.observe(11ms);
  node.counters.decide_to_signal.observe(60us);
  node.counters.signal_to_exit.observe(300s);
  node.counters.sweep.observe(1200us);
  node.counters.wakeups[0] = 42;
  node.counters.checks = {40, 2};
  node.counters.victims_gone = 2;
  node.counters.memory_returned = 1 << 30;
  node.counters.missing_readings = 6;
  node.process_usage.cpu = 1500ms;
  node.process_usage.resident = 20 << 20;
  node.sources[0] = "bpf";
  node.sources[6] = "files";
  node.programs[0].name = "stall";
  node.programs[0].hook = "memstall";
  node.programs[0].lost_in_map = 3;
  node.programs[1].name = "throttle";
  node.programs[2].name = "lifecycle";
  node.programs[2].hook = "cgroup";
  node.waits.stalls.emplace();
  node.waits.stalls->causes[HR_STALL_GLOBAL] = sample_waits(2'000'000, 0, 2);
  node.waits.stalls->causes[HR_STALL_LIMIT] = sample_waits(2'500'000'000, 90, 10);
  node.waits.throttles = sample_waits(720'000'000, 0, 8);
  node.counters.kernel_oom_kills_at_limit = 2;
  node.counters.kernel_oom_kills_of_node = {.kills = 3, .same_choice = 1};
  node.counters.kernel_oom_kills_of_pods = {.kills = 5, .same_choice = 4};
  node.counters.oom_scores_written = 12;
  node.counters.oom_scores_failed = 1;
  node.counters.victim_exits = 5;
  node.counters.pod_memory = {.raised_now = 2,
                              .raised_bytes = 32 << 20,
                              .raised = 7,
                              .lowered = 5,
                              .postponed = 1,
                              .failed = 0,
                              .background_reclaimed = 96 << 20,
                              .cold_pushed = 64 << 20,
                              .cold_returned = 3 << 20};
  node.counters.cpu_burst = {
      .grants = {{.pod = CgroupId{5}, .cpus = 0.5}}, .granted = 4, .withdrawn = 3, .failed = 1};
  node.counters.pod_swap = {
      .limited = 3, .kept_in_zswap = 2, .throttles = 40, .set = 8, .restored = 3, .failed = 1};
  node.counters.cpu_suppress = {.pods = {CgroupId{5}}, .suppressed = 6, .released = 5, .failed = 1};
  node.audit_log = "/var/log/headroom/evictions.jsonl";
  return node;
}

PeakForecast::Records sample_forecasts() {
  PeakForecast::Records records(kPeakPredictors.size());
  records[0] = {.forecast = 3e9, .held = 198, .exceeded = 2, .error_sum = 6};
  return records;
}

report::NodeStatusRef sample_status() {
  auto status = std::make_shared<report::NodeStatus>();
  status->state.taints = {{"dedicated", "gpu", TaintEffect::kNoExecute}};
  for (ResourceList* list : {&status->capacity, &status->allocatable, &status->reserved,
                             &status->requested, &status->limits})
    list->emplace("cpu", *Quantity::parse("3500m"));
  return status;
}

report::SlicesRef sample_slices() {
  using Role = NodeCgroup::Role;
  auto view = std::make_shared<report::SlicesView>();
  view->mode = SlicesMode::kEnforce;
  view->calls = 9;
  view->calls_failed = 1;
  view->calls_waited = std::chrono::milliseconds(250);
  const CgroupValues pods{.cpu_weight = CpuWeight{59}, .memory_max = 3_GiB};
  const CgroupValues reserve{.cpu_weight = CpuWeight{20}, .memory_max = 512_MiB};
  view->slices = {{.role = Role::kPods,
                   .path = "/kubepods.slice",
                   .share = {.cpu = MilliCpu{1500}, .memory = 3_GiB, .pids = Tasks{1000}},
                   .exists = true,
                   .desired = pods,
                   .actual = pods,
                   .memory = 1_GiB,
                   .tasks = Tasks{12},
                   .cpus = 0.25},
                  {.role = Role::kKubeReserved,
                   .path = "/kube.slice",
                   .share = {.cpu = MilliCpu{500}, .memory = 512_MiB},
                   .exists = true,
                   .desired = reserve,
                   .actual = {.cpu_weight = CpuWeight{20}, .memory_max = Limit<Bytes>::max()},
                   .differs = {.memory_max = 512_MiB},
                   .memory = 600_MiB,
                   .excess_usage = 600_MiB,
                   .lowering = {.late = true, .missed = 1},
                   .drift = {{"memory.max", 2}, {"slice", 1}}},
                  {.role = Role::kBestEffort,
                   .path = "/kubepods.slice/kubepods-besteffort.slice",
                   .desired = {.cpu_weight = CpuWeight{1}},
                   .differs = {.cpu_weight = CpuWeight{1}},
                   .error = "reach systemd on the system bus: gone"}};
  return view;
}

Eviction sample_eviction() {
  const auto hog = sample_pod("hog", QosClass::kBestEffort);
  const auto web = sample_pod("web", QosClass::kBurstable, 100);
  Eviction eviction;
  eviction.decision = {.act = Act::kKill,
                       .pod = hog,
                       .cgroup = CgroupId{3},
                       .reason = {.signal = Signal::kMemoryAvailable,
                                  .hard = true,
                                  .threshold = (100_MiB).count,
                                  .available = (52_MiB).count,
                                  .capacity = (4_GiB).count,
                                  .sampled_at = sample_at(1'010),
                                  .first_crossed = sample_at(1'010),
                                  .last_clear = sample_at(1'000)},
                       .rank_info = {.rank = 0,
                                     .candidates = 2,
                                     .working_set = 1_GiB,
                                     .memory_request = 0_B,
                                     .usage = (1_GiB).count,
                                     .request = 0},
                       .steps = {},
                       .decided_at = sample_at(1'012),
                       .deadline = sample_at(2'012)};
  eviction.path = "/kubepods.slice/kubepods-poduid_hog.slice";
  eviction.ranking = {{.pod = hog,
                       .usage = (1_GiB).count,
                       .request = 0,
                       .selection = Candidate::Selection::kChosen},
                      {.pod = web,
                       .usage = std::nullopt,
                       .request = (512_MiB).count,
                       .priority = 100,
                       .selection = Candidate::Selection::kOutranked}};
  eviction.message = "The node was low on resource: memory. ";
  eviction.signalled_at = sample_at(1'013);
  eviction.killed_at = sample_at(1'013);
  eviction.ended_at = sample_at(1'098);
  eviction.ending = report::Ending::kEvicted;
  eviction.memory_returned = 1_GiB;
  return eviction;
}

nlohmann::ordered_json status_json(const NodeView& node, const CgroupTable& cgroups,
                                   report::QosOf qos_of, std::optional<std::size_t> most) {
  return nlohmann::ordered_json::parse(report::status_text(
      node, report::IndexedCgroupTable(cgroups), qos_of, most, nlohmann::ordered_json::object()));
}

}  // namespace headroom::test
