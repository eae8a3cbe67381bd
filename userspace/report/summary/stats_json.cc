// SPDX-License-Identifier: Apache-2.0
#include "report/summary/stats_json.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

// Known and finite: the Summary API has no value for "no limit".
bool is_known(const hr_record& record, hr_u32 group, hr_u64 value) {
  return (record.valid & group) && value != HR_UNKNOWN && value != HR_NO_LIMIT;
}

void put_field(Json& object, const char* name, const hr_record& record, hr_u32 group,
               hr_u64 value) {
  if (is_known(record, group, value)) object[name] = value;
}

PsiKinds read_psi_averages(const std::string& directory, hr_psi_resource resource) {
  constexpr const char* kFiles[HR_PSI_RESOURCES] = {"/cpu.pressure", "/memory.pressure",
                                                    "/io.pressure"};
  if (directory.empty()) return {};
  std::ifstream file(directory + kFiles[resource]);  // if the cgroup is gone, nothing is read
  std::string text(std::istreambuf_iterator<char>(file), {});
  return parse_psi_averages(text);
}

// Totals are in microseconds, as the kubelet reports them (its API documents nanoseconds); averages
// are in percent.
Json psi_json(const CgroupReading& reading, hr_psi_resource resource) {
  const hr_record& record = reading.record;
  const PsiKinds averages = read_psi_averages(reading.directory, resource);
  Json psi;
  const auto kind = [&](const char* name, hr_psi_kind which) {
    const hr_u64 total = record.psi_ns[resource][which];
    if (!is_known(record, HR_PSI, total)) return;
    psi[name]["total"] = total / 1000;
    if (!averages[which]) return;
    psi[name]["avg10"] = averages[which]->avg10;
    psi[name]["avg60"] = averages[which]->avg60;
    psi[name]["avg300"] = averages[which]->avg300;
  };
  kind("full", HR_PSI_FULL);
  kind("some", HR_PSI_SOME);
  return psi;
}

// The fields with the time as the first member; null if there are no fields.
Json with_time(WallTime time, Json fields) {
  if (fields.empty()) return nullptr;
  Json result{{"time", rfc3339(time)}};
  result.update(fields);
  return result;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* const begin = line.data() + at + key.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

PsiKinds parse_psi_averages(std::string_view text) {
  PsiKinds kinds;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto avg10 = number_after(line, " avg10="), avg60 = number_after(line, " avg60="),
               avg300 = number_after(line, " avg300=");
    if (!avg10 || !avg60 || !avg300) continue;
    if (line.starts_with("some ")) kinds[HR_PSI_SOME] = PsiAverages{*avg10, *avg60, *avg300};
    if (line.starts_with("full ")) kinds[HR_PSI_FULL] = PsiAverages{*avg10, *avg60, *avg300};
  }
  return kinds;
}

void put(Json& object, const char* name, Json value) {
  if (!value.is_null()) object[name] = std::move(value);
}

void put_start(Json& object, std::uint64_t started_ns) {
  if (started_ns == HR_UNKNOWN) return;
  const auto since = std::chrono::nanoseconds(static_cast<std::int64_t>(started_ns));
  object["startTime"] = rfc3339(WallTime(std::chrono::duration_cast<WallTime::duration>(since)));
}

Json cpu_json(const CgroupReading& reading) {
  Json cpu = Json::object();
  if (reading.usage_nanocores != HR_UNKNOWN) cpu["usageNanoCores"] = reading.usage_nanocores;
  put_field(cpu, "usageCoreNanoSeconds", reading.record, HR_CPU, reading.record.cpu_usage_ns);
  put(cpu, "psi", psi_json(reading, HR_PSI_CPU));
  return with_time(reading.time, std::move(cpu));
}

Json memory_json(const CgroupReading& reading) {
  const hr_record& record = reading.record;
  Json memory = Json::object();
  const auto used_memory = working_set(record);
  if (used_memory && is_known(record, HR_MEMORY_LIMITS, record.memory_max)) {
    const auto used = static_cast<hr_u64>(used_memory->count);
    memory["availableBytes"] = record.memory_max > used ? record.memory_max - used : 0;
  }
  put_field(memory, "usageBytes", record, HR_MEMORY_USAGE, record.memory_usage);
  if (used_memory) memory["workingSetBytes"] = used_memory->count;
  put_field(memory, "rssBytes", record, HR_MEMORY_STAT, record.anon);
  put_field(memory, "pageFaults", record, HR_RECLAIM, record.pgfault);
  put_field(memory, "majorPageFaults", record, HR_RECLAIM, record.pgmajfault);
  put(memory, "psi", psi_json(reading, HR_PSI_MEMORY));
  return with_time(reading.time, std::move(memory));
}

Json swap_json(const CgroupReading& reading) {
  const hr_record& record = reading.record;
  Json swap = Json::object();
  const bool used = is_known(record, HR_MEMORY_USAGE, record.swap_usage);
  if (used && is_known(record, HR_MEMORY_LIMITS, record.swap_max))
    swap["swapAvailableBytes"] =
        record.swap_max > record.swap_usage ? record.swap_max - record.swap_usage : 0;
  if (used) swap["swapUsageBytes"] = record.swap_usage;
  return with_time(reading.time, std::move(swap));
}

Json node_swap_json(const std::optional<Observation>& swap, WallTime time) {
  if (!swap) return nullptr;
  return {{"time", rfc3339(time)},
          {"swapAvailableBytes", swap->available},
          {"swapUsageBytes", swap->capacity - swap->available}};
}

Json io_json(const CgroupReading& reading) {
  Json io = Json::object();
  put(io, "psi", psi_json(reading, HR_PSI_IO));
  return with_time(reading.time, std::move(io));
}

Json network_json(const NetworkDevices& devices, WallTime time) {
  Json network = Json::object();
  Json interfaces = Json::array();
  for (const NetworkDevice& device : devices) {
    const Json counters{{"name", device.name},
                        {"rxBytes", device.received.bytes},
                        {"rxErrors", device.received.errors},
                        {"txBytes", device.sent.bytes},
                        {"txErrors", device.sent.errors}};
    if (device.name == "eth0") network.update(counters);
    interfaces.push_back(counters);
  }
  if (interfaces.empty()) return nullptr;
  if (!network.contains("name")) network["name"] = "";  // as in the kubelet: no default
  network["interfaces"] = std::move(interfaces);
  return with_time(time, std::move(network));
}

Json fs_json(const std::optional<Observation>& bytes, const std::optional<Observation>& inodes,
             WallTime time) {
  Json fs = Json::object();
  if (bytes) {
    fs["availableBytes"] = bytes->available;
    fs["capacityBytes"] = bytes->capacity;
  }
  if (inodes) {
    fs["inodesFree"] = inodes->available;
    fs["inodes"] = inodes->capacity;
    fs["inodesUsed"] = inodes->capacity - inodes->available;
  }
  return with_time(time, std::move(fs));
}

Json measured_fs_json(const FsUsage& used, const std::optional<Observation>& bytes,
                      const std::optional<Observation>& inodes, WallTime time) {
  if (!used.used) return nullptr;
  Json fs = fs_json(bytes, inodes, time);
  if (fs.is_null()) fs["time"] = rfc3339(time);
  fs.erase("inodesUsed");  // the filesystem's value
  fs["usedBytes"] = used.used->count;
  if (used.inodes) fs["inodesUsed"] = *used.inodes;
  return fs;
}

Json rlimit_json(const std::optional<Observation>& pids, WallTime time) {
  if (!pids) return nullptr;
  return {{"time", rfc3339(time)},
          {"maxpid", pids->capacity},
          {"curproc", pids->capacity - pids->available}};
}

}  // namespace headroom::report
