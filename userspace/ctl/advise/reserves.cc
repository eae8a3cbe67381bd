// SPDX-License-Identifier: Apache-2.0
#include "ctl/advise/reserves.h"

#include "base/human_readable.h"
#include "base/json_text.h"

#include <headroom/quantity.h>

#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr OfReserves<const char*> kReserveNames{"kubeReserved", "systemReserved"};
constexpr OfResources<const char*> kResourceNames{"cpu", "memory", "pid"};  // the kubelet's
// Advised values are multiples of these.
constexpr OfResources<double> kUnits{10, 1024.0 * 1024, 10};

std::optional<std::int64_t> present_value(const recording::ReservedAmounts& reserved,
                                          std::size_t resource) {
  return resource == kCpu      ? reserved.milli_cpu
         : resource == kMemory ? reserved.memory
                               : reserved.pids;
}

const recording::ReservedAmounts& present_amounts(const RecordedReserves& recorded,
                                                  std::size_t reserve) {
  return reserve == kKubeReserved ? recorded.present.kube : recorded.present.system;
}

bool found_any(const RecordedReserves& recorded, std::size_t reserve) {
  return !recorded.use[reserve].cgroups.empty();
}

// As a configuration has it: "120m", "640Mi", "210".
std::string quantity(std::size_t resource, double value) {
  const auto count = static_cast<std::int64_t>(value);
  if (resource == kCpu) return Quantity::of_milli(count).canonical();
  return Quantity::of(count, resource == kMemory ? Quantity::Format::kBinarySI
                                                 : Quantity::Format::kDecimalSI)
      .canonical();
}

// To be read: "123m", "0.6Gi", "87".
std::string rough(std::size_t resource, double value) {
  if (resource == kMemory) return bytes(static_cast<std::int64_t>(value));
  return fmt::format("{:.0f}{}", value, resource == kCpu ? "m" : "");
}

// --- text ----------------------------------------------------------------------------------------

Cell reserved_cell(std::size_t resource, std::optional<std::int64_t> present,
                   const ReserveAdvice& advice) {
  const std::string now =
      present ? quantity(resource, static_cast<double>(*present)) : std::string("-");
  if (!advice.changes) return {now};
  return {now + " -> " + quantity(resource, advice.wanted), Colour::kYellow};
}

Row resource_row(const AdvisedReserves& advised, std::size_t reserve, std::size_t resource) {
  const auto present = present_value(present_amounts(advised.recorded, reserve), resource);
  Row row{{kReserveNames[reserve]}, {kResourceNames[resource]}};
  const auto& advice = advised.advice[reserve][resource];
  if (!advice) {
    row.push_back({present ? quantity(resource, static_cast<double>(*present)) : "-"});
    for (int i = 0; i < 4; ++i)
      row.push_back({"-"});
    return row;
  }
  row.push_back(reserved_cell(resource, present, *advice));
  for (const double value : {advice->median, advice->p98, advice->peak})
    row.push_back({rough(resource, value)});
  row.push_back({fmt::format("{:.1f} %", 100 * advice->too_low)});
  return row;
}

std::string cgroup_list(const ReservedUse& use) {
  std::string text;
  for (const auto& [path, series] : use.cgroups) {
    text += text.empty() ? "" : ", ";
    text += path == "/" ? "the kernel and the root" : printable(path);
    if (const auto most = percentile(series[kMemory], 1))
      text += " (" + bytes(static_cast<std::int64_t>(*most)) + ")";
  }
  return text;
}

std::string evidence_of(const AdvisedReserves& advised) {
  const RecordedReserves& recorded = advised.recorded;
  std::string text = fmt::format(
      "{} samples of a minute in {}; predictor {}. In brackets: the highest memory use.\n",
      recorded.steps(), report::human(recorded.recorded), advised.predictor.name);
  for (std::size_t reserve = 0; reserve < kReserves; ++reserve) {
    if (!found_any(recorded, reserve)) continue;
    const ReservedUse& use = recorded.use[reserve];
    text += fmt::format("{}: {}", kReserveNames[reserve], cgroup_list(use));
    if (use.limit_hits > 0)
      text += fmt::format("; {} times at their limits, so that more would be used", use.limit_hits);
    text += '\n';
  }
  if (!found_any(recorded, kKubeReserved))
    text +=
        "kubeReserved: the recording has no cgroup of a kubelet or container runtime "
        "(kubeReservedCgroup, kubeletCgroups, or their services in /system.slice). What they use "
        "is counted in systemReserved.\n";
  return text;
}

// --- JSON ----------------------------------------------------------------------------------------

Json resource_json(const AdvisedReserves& advised, std::size_t reserve, std::size_t resource) {
  const auto present = present_value(present_amounts(advised.recorded, reserve), resource);
  Json json{{"present", present ? Json(quantity(resource, static_cast<double>(*present))) : Json()},
            {"advised", nullptr}};
  const auto& advice = advised.advice[reserve][resource];
  if (!advice) return json;
  json["advised"] = quantity(resource, advice->wanted);
  json["differs"] = advice->changes;
  json["samples"] = advised.recorded.use[reserve].sum[resource].size();
  // In cores, bytes and tasks.
  const double divisor = resource == kCpu ? 1000 : 1;
  json["median"] = advice->median / divisor;
  json["p98"] = advice->p98 / divisor;
  json["peak"] = advice->peak / divisor;
  json["too_low_ratio"] = advice->too_low;
  return json;
}

}  // namespace

Result<AdvisedReserves> advise_reserves(RecordedReserves recorded, NamedPredictor predictor) {
  if (recorded.steps() < kLeastReserveSteps)
    return failure(
        fmt::format("too little is recorded to advise from: {} samples of a minute in "
                    "{}, and {} are needed",
                    recorded.steps(), report::human(recorded.recorded), kLeastReserveSteps));
  AdvisedReserves advised{.recorded = std::move(recorded), .predictor = predictor, .advice = {}};
  for (std::size_t reserve = 0; reserve < kReserves; ++reserve) {
    const ReservedUse& use = advised.recorded.use[reserve];
    if (use.cgroups.empty()) continue;
    for (std::size_t resource = 0; resource < kReservedResources; ++resource) {
      ReserveUse wanted{
          .cgroups = {},
          .sum = use.sum[resource],
          .capacity = advised.recorded.capacity[resource],
          .present = present_value(present_amounts(advised.recorded, reserve), resource),
          .at_limit = resource == kMemory && use.limit_hits > 0,
          .unit = kUnits[resource]};
      for (const auto& [path, series] : use.cgroups)
        wanted.cgroups.push_back(series[resource]);
      advised.advice[reserve][resource] = advise_reserve(wanted, predictor.predict);
    }
  }
  return advised;
}

std::string render_reserves(const AdvisedReserves& advised, const Screen& screen) {
  Row titles;
  for (const char* title : {"RESERVE", "RESOURCE", "RESERVED", "MEDIAN", "98 %", "PEAK", "TOO LOW"})
    titles.push_back({title, Colour::kBold});
  std::vector<Row> rows{std::move(titles)};
  for (std::size_t reserve = 0; reserve < kReserves; ++reserve)
    if (found_any(advised.recorded, reserve))
      for (std::size_t resource = 0; resource < kReservedResources; ++resource)
        rows.push_back(resource_row(advised, reserve, resource));
  return table(rows, 2, screen) + '\n' + evidence_of(advised) +
         "\nFor the kubelet's configuration; nothing has been changed:\n\n" +
         reserves_yaml(advised);
}

std::string reserves_yaml(const AdvisedReserves& advised) {
  std::string text;
  for (std::size_t reserve = 0; reserve < kReserves; ++reserve) {
    if (!found_any(advised.recorded, reserve)) continue;
    const recording::ReservedAmounts& amounts = present_amounts(advised.recorded, reserve);
    text += fmt::format("{}:\n", kReserveNames[reserve]);
    for (std::size_t resource = 0; resource < kReservedResources; ++resource) {
      const auto present = present_value(amounts, resource);
      const auto& advice = advised.advice[reserve][resource];
      if (advice && advice->changes)
        text += fmt::format("  {}: \"{}\"\n", kResourceNames[resource],
                            quantity(resource, advice->wanted));
      else if (present)
        text += fmt::format("  {}: \"{}\"\n", kResourceNames[resource],
                            quantity(resource, static_cast<double>(*present)));
    }
    if (amounts.ephemeral_storage)
      text += fmt::format("  ephemeral-storage: \"{}\"\n",
                          quantity(kMemory, static_cast<double>(*amounts.ephemeral_storage)));
  }
  return text;
}

std::string reserves_json(const AdvisedReserves& advised) {
  const RecordedReserves& recorded = advised.recorded;
  Json whole{{"samples", recorded.steps()},
             {"seconds", seconds_of(recorded.recorded)},
             {"predictor", advised.predictor.name}};
  for (std::size_t reserve = 0; reserve < kReserves; ++reserve) {
    const ReservedUse& use = recorded.use[reserve];
    Json& json = whole[kReserveNames[reserve]];
    json["cgroups"] = Json::array();
    for (const auto& [path, series] : use.cgroups)
      json["cgroups"].push_back(path);
    json["limit_hits"] = use.limit_hits;
    for (std::size_t resource = 0; resource < kReservedResources; ++resource)
      json[kResourceNames[resource]] = resource_json(advised, reserve, resource);
  }
  return to_json_text(whole) + "\n";
}

}  // namespace headroom::ctl
