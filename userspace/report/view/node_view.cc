// SPDX-License-Identifier: Apache-2.0
#include "report/view/node_view.h"

#include "base/human_readable.h"
#include "report/disk/pod_disk_usage.h"

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

// Copies in pieces that are small enough for the C library to use vector instructions. For larger
// ones it uses "rep movsb", which takes an emulated CPU one step per byte.
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

bool same_order(const CgroupTable& table, const SweepChanges& changes) {
  return table.order == changes.order && !changes.change_stamps.empty() &&
         table.records.size() == changes.change_stamps.size();
}

// If the cgroups are at the same positions, only records written since the last copy must be
// copied.
void copy_changed_records(std::span<const hr_record> from, const SweepChanges& changes,
                          CgroupTable& table) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (changes.change_stamps[i].pass > table.pass) table.records[i] = from[i];
}

void update_identities(CgroupTable& table, const CgroupNames* names) {
  if (table.identities.use_count() != 1) table.identities = std::make_shared<CgroupIdentities>();
  auto& [paths, path_ends, started_ns, all_named] = *table.identities;
  paths.clear();
  path_ends.clear();
  started_ns.clear();
  all_named = true;
  for (const hr_record& record : table.records) {
    const std::string_view path = names ? names->path_of(CgroupId{record.id}) : "";
    all_named = all_named && !path.empty();
    append_printable(paths, path);
    path_ends.push_back(static_cast<std::uint32_t>(paths.size()));
    started_ns.push_back(names ? names->started_ns(CgroupId{record.id}) : HR_UNKNOWN);
  }
}

// The position of `id` in `previous`, searched a little way from `hint` on: both tables are in the
// order of the cgroup tree. Absent: not found there.
std::optional<std::size_t> position(const CgroupTable& previous, std::uint64_t id,
                                    std::size_t& hint) {
  constexpr std::size_t kMaxDrift = 64;
  const std::size_t end = std::min(previous.records.size(), hint + kMaxDrift);
  for (std::size_t i = hint; i < end; ++i) {
    if (previous.records[i].id != id) continue;
    hint = i + 1;
    return i;
  }
  return std::nullopt;
}

std::uint64_t nanocores(const hr_record& before, const hr_record& now, Duration interval) {
  if (!(before.valid & now.valid & HR_CPU)) return HR_UNKNOWN;
  // utime and stime are not monotonic per cgroup.
  if (now.cpu_usage_ns <= before.cpu_usage_ns) return 0;
  const auto used = static_cast<double>(now.cpu_usage_ns - before.cpu_usage_ns);
  return static_cast<std::uint64_t>(used * 1e9 / static_cast<double>(interval.count()));
}

// A rate over a shorter time is too inaccurate; the rate of the previous table is kept.
constexpr Duration kMinInterval = std::chrono::milliseconds(100);

// The CPU usage of a record that no sweep has written since the previous table: its cgroup was
// idle.
std::uint64_t idle_cpu_usage(const hr_record& record, std::uint64_t before) {
  return before == HR_UNKNOWN && !(record.valid & HR_CPU) ? HR_UNKNOWN : 0;
}

void update_changed_cpu_usage(CgroupTable& table, const CgroupTable& previous,
                              const SweepChanges& changes) {
  const Duration interval = table.at - previous.at;
  if (interval < kMinInterval) {
    table.usage_nanocores = previous.usage_nanocores;
    return;
  }
  table.usage_nanocores.resize(table.records.size());
  for (std::size_t i = 0; i < table.records.size(); ++i)
    table.usage_nanocores[i] = changes.change_stamps[i].pass > previous.pass
                                   ? nanocores(previous.records[i], table.records[i], interval)
                                   : idle_cpu_usage(table.records[i], previous.usage_nanocores[i]);
}

void compute_cpu_usage(CgroupTable& table, const CgroupTable* previous,
                       const SweepChanges& changes) {
  if (previous && same_order(*previous, changes))
    return update_changed_cpu_usage(table, *previous, changes);
  table.usage_nanocores.assign(table.records.size(), HR_UNKNOWN);
  if (!previous) return;
  const Duration interval = table.at - previous->at;
  std::size_t hint = 0;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const auto previous_index = position(*previous, table.records[i].id, hint);
    if (!previous_index) continue;
    table.usage_nanocores[i] =
        interval < kMinInterval
            ? previous->usage_nanocores[*previous_index]
            : nanocores(previous->records[*previous_index], table.records[i], interval);
  }
}

// An equal row is not written again: copying a reference to a pod costs two locked instructions.
void update_pod_rows(std::span<const PodReading> pods, std::vector<PodRow>& rows) {
  rows.resize(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const PodReading& pod = pods[i];
    PodRow& row = rows[i];
    if (row.pod == pod.pod && row.cgroup == pod.cgroup && row.measured == pod.measured &&
        row.description == pod.description)
      continue;
    row = {.pod = pod.pod,
           .cgroup = pod.cgroup,
           .memory_request = pod.memory_request,
           .critical = pod.critical,
           .disk = pod.disk ? ephemeral_storage(*pod.disk).used : std::nullopt,
           .measured = pod.measured,
           .disk_parts = pod.disk ? std::make_shared<const DiskUsage>(*pod.disk) : nullptr,
           .description = pod.description};
  }
}

}  // namespace

std::string_view qos_name(const Pod& pod, QosOf qos_of) {
  if (pod.declared_qos) return name(*pod.declared_qos);
  return qos_of ? name(qos_of(pod)) : "";
}

void fill(CgroupTable& table, const CgroupTable* previous, const Snapshot& snapshot,
          const CgroupNames* names) {
  table.at = snapshot.at;
  const auto records = snapshot.cgroups.value_or(std::span<const hr_record>{});
  if (same_order(table, snapshot.changes))
    copy_changed_records(records, snapshot.changes, table);
  else
    copy(records, table.records);
  table.pass = snapshot.changes.pass;
  table.order = snapshot.changes.order;
  update_pod_rows(snapshot.pods, table.pods);
  compute_cpu_usage(table, previous, snapshot.changes);
  table.stalls.assign(snapshot.waits.stalls);
  table.throttles.assign(snapshot.waits.throttles, &hr_throttles::waits);
  table.cpu_waits.assign(snapshot.waits.cpu);
  table.cpu_pairs.assign(snapshot.waits.cpu_pairs.begin(), snapshot.waits.cpu_pairs.end());
  table.memory_pairs.assign(snapshot.waits.memory_pairs.begin(), snapshot.waits.memory_pairs.end());
  // A cgroup's name never changes (cgroup v2 has no rename), but it may be learnt late.
  if (previous && previous->identities->all_named &&
      (same_order(*previous, snapshot.changes) || same_cgroups(table, *previous)))
    table.identities = previous->identities;
  else
    update_identities(table, names);
}

void fill_thresholds(std::vector<ThresholdView>& views, const Policy& policy,
                     const Verdict& verdict) {
  views.clear();
  for (const ThresholdReading& reading : verdict.thresholds) {
    // A verdict of an older policy may name a threshold that no longer exists.
    if (reading.index >= policy.thresholds.size()) continue;
    const Threshold& threshold = policy.thresholds[reading.index];
    views.push_back(ThresholdView{.signal = threshold.signal,
                                  .grace = threshold.grace,
                                  .limit = reading.limit,
                                  .available = reading.available,
                                  .below_since = reading.below_since,
                                  .met = reading.met,
                                  .time_to = reading.time_to});
  }
}

}  // namespace headroom::report
