// SPDX-License-Identifier: Apache-2.0
#include "report/node_view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace headroom::report {
namespace {

bool same_cgroups(const CgroupTable& a, const CgroupTable& b) {
  return std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(),
                    [](const hr_record& x, const hr_record& y) { return x.id == y.id; });
}

// Pieces are small enough for the C library to move by vector instructions. What is larger it
// leaves to "rep movsb", which costs an emulated CPU a step for each byte.
void copy(std::span<const hr_record> from, std::vector<hr_record>& to) {
  constexpr std::size_t kPiece = 2048;
  to.resize(from.size());
  const auto* source = reinterpret_cast<const std::byte*>(from.data());
  auto* target = reinterpret_cast<std::byte*>(to.data());
  for (std::size_t left = from.size_bytes(); left > 0;) {
    const std::size_t piece = std::min(left, kPiece);
    std::memcpy(target, source, piece);
    source += piece, target += piece, left -= piece;
  }
}

bool same_order(const CgroupTable& table, const SweepNews& news) {
  return table.order == news.order && !news.marks.empty() &&
         table.records.size() == news.marks.size();
}

// What was written since: all there is to copy, where the cgroups are still in their places.
void copy_news(std::span<const hr_record> from, const SweepNews& news, CgroupTable& table) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (news.marks[i].pass > table.pass) table.records[i] = from[i];
}

void identify(CgroupTable& table, const CgroupNames* names) {
  if (table.identities.use_count() != 1) table.identities = std::make_shared<CgroupIdentities>();
  auto& [paths, path_ends, started_ns, all_named] = *table.identities;
  paths.clear();
  path_ends.clear();
  started_ns.clear();
  all_named = true;
  for (const hr_record& record : table.records) {
    const std::string_view path = names ? names->path_of(CgroupId{record.id}) : "";
    all_named = all_named && !path.empty();
    paths.append(path);
    path_ends.push_back(static_cast<std::uint32_t>(paths.size()));
    started_ns.push_back(names ? names->started_ns(CgroupId{record.id}) : HR_UNKNOWN);
  }
}

// Where `id` is in `shown`, at or a little after `hint`: both are in the tree's order.
std::optional<std::size_t> position(const CgroupTable& shown, std::uint64_t id, std::size_t& hint) {
  constexpr std::size_t kDrift = 64;
  const std::size_t end = std::min(shown.records.size(), hint + kDrift);
  for (std::size_t i = hint; i < end; ++i) {
    if (shown.records[i].id != id) continue;
    hint = i + 1;
    return i;
  }
  return std::nullopt;
}

std::uint64_t nanocores(const hr_record& before, const hr_record& now, Duration took) {
  if (!(before.valid & now.valid & HR_CPU)) return HR_UNKNOWN;
  // utime and stime are not monotonic per cgroup.
  if (now.cpu_usage_ns <= before.cpu_usage_ns) return 0;
  const auto used = static_cast<double>(now.cpu_usage_ns - before.cpu_usage_ns);
  return static_cast<std::uint64_t>(used * 1e9 / static_cast<double>(took.count()));
}

// Over less than this a rate is noise; that of the table before still holds.
constexpr Duration kShortest = std::chrono::milliseconds(100);

// Of a record that no sweep since has written: that of a sleeper.
std::uint64_t asleep(const hr_record& record, std::uint64_t before) {
  return before == HR_UNKNOWN && !(record.valid & HR_CPU) ? HR_UNKNOWN : 0;
}

void work_out_cpu_of_the_new(CgroupTable& table, const CgroupTable& shown, const SweepNews& news) {
  const Duration took = table.at - shown.at;
  if (took < kShortest) {
    table.usage_nanocores = shown.usage_nanocores;
    return;
  }
  table.usage_nanocores.resize(table.records.size());
  for (std::size_t i = 0; i < table.records.size(); ++i)
    table.usage_nanocores[i] = news.marks[i].pass > shown.pass
                                   ? nanocores(shown.records[i], table.records[i], took)
                                   : asleep(table.records[i], shown.usage_nanocores[i]);
}

void work_out_cpu(CgroupTable& table, const CgroupTable* shown, const SweepNews& news) {
  if (shown && same_order(*shown, news)) return work_out_cpu_of_the_new(table, *shown, news);
  table.usage_nanocores.assign(table.records.size(), HR_UNKNOWN);
  if (!shown) return;
  const Duration took = table.at - shown->at;
  std::size_t hint = 0;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const auto was = position(*shown, table.records[i].id, hint);
    if (!was) continue;
    table.usage_nanocores[i] = took < kShortest
                                   ? shown->usage_nanocores[*was]
                                   : nanocores(shown->records[*was], table.records[i], took);
  }
}

void add(std::optional<Bytes>& sum, const FsUsage& part) {
  if (part.used) sum = Bytes{sum.value_or(Bytes{}).count + part.used->count};
}

// Logs, writable layers and local volumes, as far as they are known.
std::optional<Bytes> disk_total(const DiskUsage& usage) {
  std::optional<Bytes> sum;
  for (const ContainerUsage& container : usage.containers) {
    add(sum, container.rootfs);
    add(sum, container.logs);
  }
  for (const VolumeUsage& volume : usage.volumes)
    if (volume.ranked) add(sum, volume.usage);
  return sum;
}

// A row that says the same already is left alone: a reference to a pod costs two locked
// instructions.
void list_pods(std::span<const PodReading> pods, std::vector<PodRow>& rows) {
  rows.resize(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const PodReading& pod = pods[i];
    PodRow& row = rows[i];
    if (row.pod == pod.pod && row.cgroup == pod.cgroup && row.measured == pod.measured) continue;
    row = {.pod = pod.pod,
           .cgroup = pod.cgroup,
           .memory_request = pod.memory_request,
           .critical = pod.critical,
           .disk = pod.disk ? disk_total(*pod.disk) : std::nullopt,
           .measured = pod.measured};
  }
}

}  // namespace

std::string_view qos_name(const Pod& pod, QosOf qos_of) {
  if (pod.declared_qos) return name(*pod.declared_qos);
  return qos_of ? name(qos_of(pod)) : "";
}

void fill(CgroupTable& table, const CgroupTable* shown, const Snapshot& snapshot,
          const CgroupNames* names) {
  table.at = snapshot.at;
  const auto records = snapshot.cgroups.value_or(std::span<const hr_record>{});
  if (same_order(table, snapshot.news))
    copy_news(records, snapshot.news, table);
  else
    copy(records, table.records);
  table.pass = snapshot.news.pass;
  table.order = snapshot.news.order;
  list_pods(snapshot.pods, table.pods);
  work_out_cpu(table, shown, snapshot.news);
  table.stalls.take(snapshot.waits.stalls);
  table.throttles.take(snapshot.waits.throttles);
  // A cgroup's name never changes (cgroup v2 has no rename), but it may be learnt late.
  if (shown && shown->identities->all_named &&
      (same_order(*shown, snapshot.news) || same_cgroups(table, *shown)))
    table.identities = shown->identities;
  else
    identify(table, names);
}

void fill_thresholds(std::vector<ThresholdView>& views, const Policy& policy,
                     const Verdict& verdict) {
  views.clear();
  for (const ThresholdStanding& standing : verdict.thresholds) {
    // A verdict of an older policy may name a threshold that is no more.
    if (standing.index >= policy.thresholds.size()) continue;
    const Threshold& threshold = policy.thresholds[standing.index];
    views.push_back(ThresholdView{.signal = threshold.signal,
                                  .grace = threshold.grace,
                                  .limit = standing.limit,
                                  .available = standing.available,
                                  .below_since = standing.below_since,
                                  .met = standing.met,
                                  .time_to = standing.time_to});
  }
}

}  // namespace headroom::report
