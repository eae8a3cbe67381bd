// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"
#include "ctl/status/kubernetes_lines.h"
#include "ctl/status/wait_tables.h"

#include <headroom/quantity.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

// resource_table_text(): the node's resources: capacity, reserved, allocatable, requests and
// limits.

std::optional<Quantity> quantity_in(const Resources& list, const std::string& resource) {
  const auto found = list.find(resource);
  if (found == list.end()) return std::nullopt;
  const auto quantity = Quantity::parse(found->second);
  return quantity ? std::optional(*quantity) : std::nullopt;
}

bool is_bytes(const std::string& resource) {
  return resource == "memory" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}

std::string amount_of(const Resources& list, const std::string& resource) {
  const auto quantity = quantity_in(list, resource);
  if (!quantity) return "-";
  return is_bytes(resource) ? bytes(quantity->value()) : quantity->canonical();
}

// The share of allocatable; above 100 % the node is overcommitted.
Cell share_of(const NodeResources& node, const Resources& list, const std::string& resource) {
  const auto part = quantity_in(list, resource), whole = quantity_in(node.allocatable, resource);
  if (!part || !whole || whole->milli_value() <= 0) return {"-"};
  const double share =
      static_cast<double>(part->milli_value()) / static_cast<double>(whole->milli_value());
  return {fmt::format("{:.0f}%", 100 * share), share > 1 ? Colour::kYellow : Colour::kNone};
}

// "" if the capacity is unknown.
std::string resource_table_text(const NodeResources& node, const Screen& screen) {
  std::vector<Row> rows{{}};
  for (const char* title : {"RESOURCE", "CAPACITY", "RESERVED", "ALLOCATABLE", "REQUESTED", "SHARE",
                            "LIMITS", "COMMITTED"})
    rows.front().push_back({title, Colour::kBold});
  for (const auto& [resource, capacity] : node.capacity)
    rows.push_back({{printable(resource)},
                    {amount_of(node.capacity, resource)},
                    {amount_of(node.reserved, resource)},
                    {amount_of(node.allocatable, resource)},
                    {amount_of(node.requested, resource)},
                    share_of(node, node.requested, resource),
                    {amount_of(node.limits, resource)},
                    share_of(node, node.limits, resource)});
  return rows.size() == 1 ? "" : table(rows, 1, screen);
}

std::string count(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : "-";
}

Cell state_of(const ThresholdStatus& threshold) {
  if (!threshold.available || !threshold.limit) return {"unknown", Colour::kYellow};
  if (threshold.met) return {"met", Colour::kRed};
  if (threshold.below_for_seconds)
    return {"below for " + seconds(threshold.below_for_seconds), Colour::kYellow};
  return {"ok", Colour::kGreen};
}

std::string kind_of(const ThresholdStatus& threshold) {
  if (threshold.grace_seconds <= 0) return threshold.kind;
  return threshold.kind + " " + seconds(threshold.grace_seconds);
}

std::optional<std::int64_t> margin(const ThresholdStatus& threshold) {
  if (!threshold.available || !threshold.limit) return std::nullopt;
  return *threshold.available - *threshold.limit;
}

std::optional<std::int64_t> capacity_of(const Status& status, const std::string& signal) {
  for (const SignalStatus& seen : status.signals)
    if (seen.signal == signal) return seen.capacity;
  return std::nullopt;
}

Row threshold_row(const Status& status, const ThresholdStatus& threshold) {
  const std::string& signal = threshold.signal;
  return {{printable(signal)},
          {printable(kind_of(threshold))},
          {amount(signal, threshold.available)},
          {amount(signal, capacity_of(status, signal))},
          {amount(signal, threshold.limit)},
          {amount(signal, margin(threshold))},
          {seconds(threshold.forecast_seconds)},
          state_of(threshold)};
}

Row bold(std::initializer_list<std::string_view> titles) {
  Row row;
  for (const std::string_view title : titles)
    row.push_back({std::string(title), Colour::kBold});
  return row;
}

std::string source_line(const Status& status) {
  std::string line = "readings:";
  for (const auto& [group, source] : status.sources)
    line += fmt::format(" {}={}", printable(group), printable(source));
  return line + '\n';
}

// The mean error of the forecasts; "" until a threshold with a forecast was crossed.
std::string forecast_line(const Status& status) {
  if (status.forecast_errors.empty()) return "";
  std::string line = "forecasts were off by:";
  for (const auto& [signal, mean] : status.forecast_errors)
    line += fmt::format("  {} {}", printable(signal), seconds(mean));
  return line + '\n';
}

// The first predictor's; "" until it has a forecast.
std::string memory_forecast_line(const Status& status) {
  if (status.memory_forecasts.empty() || !status.memory_forecasts.front().bytes) return "";
  const MemoryForecastStatus& forecast = status.memory_forecasts.front();
  std::string line = fmt::format("memory forecast:  pods use at most {} in the next hour ({}",
                                 bytes(forecast.bytes), printable(forecast.predictor));
  if (forecast.mean_error)
    line +=
        fmt::format("; {} of {} forecasts were too low, {:+.1f}% off on average", forecast.exceeded,
                    forecast.held + forecast.exceeded, *forecast.mean_error * 100);
  return line + ")\n";
}

std::string room_line(const SwapStatus& swap) {
  std::string line =
      fmt::format("{}:  {} = ", swap.swap ? "with swap" : "without swap", bytes(swap.available));
  if (swap.bound == "kubelet")
    line += "the kubelet's value";
  else if (!swap.swap)
    line += fmt::format("memory {}", bytes(swap.memory));
  else
    line += fmt::format("memory {} + swap {} - filling {}", bytes(swap.memory), bytes(swap.gain),
                        bytes(swap.filling));
  if (swap.bound == "thrashing") line += ", thrashing";
  if (swap.bound != "kubelet")
    line += fmt::format("; the kubelet's value is {}", bytes(swap.kubelet));
  return line + (swap.in_force ? "\n" : "; not in force (swapAware: false)\n");
}

// "" while nothing was done.
std::string pod_memory_lines(const PodMemoryStatus& done) {
  std::string text;
  if (done.raises > 0)
    text += fmt::format("raised limits:  {} by {}  raises {}  lowerings {}\n", done.raised_limits,
                        bytes(done.raised_bytes), done.raises, done.lowerings);
  if (done.background_reclaimed > 0)
    text += fmt::format("reclaimed near limits:  {}\n", bytes(done.background_reclaimed));
  if (done.cold_pushed > 0)
    text += fmt::format("cold memory:  pushed out {}  came back {}\n", bytes(done.cold_pushed),
                        bytes(done.cold_returned));
  return text;
}

std::string cpu_burst_line(const CpuBurstStatus& burst) {
  if (burst.granted == 0) return "";
  return fmt::format("CPU bursts:  {:.2f} CPUs to {} pods  granted {}  withdrawn {}\n", burst.cpus,
                     burst.pods, burst.granted, burst.withdrawn);
}

std::string cpu_suppress_line(const CpuSuppressStatus& done) {
  if (done.suppressed == 0) return "";
  return fmt::format("CPU time suppressed:  {} pods  suppressed {}  released {}\n", done.pods,
                     done.suppressed, done.released);
}

std::string pod_swap_line(const PodSwapStatus& done) {
  if (done.set == 0) return "";
  return fmt::format("swap of pods:  {} limited  slowed down {} times  {} kept in zswap\n",
                     done.limited, done.throttles, done.kept_in_zswap);
}

// "" on most nodes: they have no taints.
std::string taint_line(const Status& status) {
  if (status.taints.empty()) return "";
  return "taints:  " + printable(fmt::format("{}", fmt::join(status.taints, ", "))) + '\n';
}

}  // namespace

std::string memory_location_line(const Status& status) {
  if (!status.swap) return "";
  const SwapStatus& swap = *status.swap;
  return fmt::format(
      "memory of processes:  resident {} ({} cold)  compressed {} in {}  on disk {}\n",
      bytes(swap.resident), bytes(swap.cold), bytes(swap.compressed), bytes(swap.compressed_size),
      bytes(swap.on_disk));
}

std::string heading(const Status& status, const Screen& screen) {
  const std::string line = fmt::format(
      "headroom {}  mode {}  pods {}  cgroups {}  evicted {}  would evict {}  failed {}",
      printable(status.version), printable(status.mode), status.pods.size(), count(status.cgroups),
      count(status.evicted), count(status.would_evict), count(status.failed));
  return table({{{line, Colour::kBold}}}, 1, screen);
}

std::string threshold_table(const Status& status, const Screen& screen) {
  std::vector<Row> rows{bold(
      {"SIGNAL", "THRESHOLD", "AVAILABLE", "CAPACITY", "LIMIT", "MARGIN", "REACHED IN", "STATE"})};
  for (const ThresholdStatus& threshold : status.thresholds)
    rows.push_back(threshold_row(status, threshold));
  if (rows.size() == 1) return "no thresholds\n";
  return table(rows, 2, screen);
}

std::string condition_line(const Status& status, const Screen& screen) {
  Row row{{"conditions:"}};
  for (const auto& [name, holds] : status.conditions)
    row.push_back(
        {printable(name) + (holds ? "=true" : "=false"), holds ? Colour::kRed : Colour::kGreen});
  return table({row}, row.size(), screen);
}

std::string render_status(const Status& status, const Screen& screen) {
  std::string text = heading(status, screen);
  text += '\n' + threshold_table(status, screen);
  if (status.swap) text += '\n' + room_line(*status.swap) + memory_location_line(status);
  if (const std::string resources = resource_table_text(status.node, screen); !resources.empty())
    text += '\n' + resources;
  text += '\n' + condition_line(status, screen);
  text += taint_line(status);
  text += pod_memory_lines(status.pod_memory);
  text += pod_swap_line(status.pod_swap);
  text += cpu_burst_line(status.cpu_burst);
  text += cpu_suppress_line(status.cpu_suppress);
  text += forecast_line(status);
  text += memory_forecast_line(status);
  if (!status.programs.empty()) text += "stalls:  " + stall_totals(status) + '\n';
  if (const std::string top_waiters = top_waiters_table(status, screen); !top_waiters.empty())
    text += '\n' + top_waiters + '\n';
  if (status.kernel_oom_kills)
    text += fmt::format("kernel OOM kills:  {}\n", *status.kernel_oom_kills);
  text += fmt::format("headroomd:  cpu {}  memory {}  readings missed {}\n",
                      seconds(status.self_cpu_seconds), bytes(status.self_resident),
                      count(status.missing_readings));
  if (!status.sources.empty()) text += source_line(status);
  if (!status.programs.empty()) text += program_line(status);
  if (!status.audit_log.empty()) text += "audit log:  " + printable(status.audit_log) + '\n';
  return text;
}

namespace {

int run_status(bool json) {
  const auto document = fetch_status();
  if (!document) return print_error(document.error());
  if (json) {
    std::puts(document->c_str());
    return 0;
  }
  const auto status = parse_status(*document);
  if (!status) return print_error(status.error());
  std::fputs(render_status(*status, screen_of_stdout()).c_str(), stdout);
  std::fputs(kubelet_line(*document, std::time(nullptr)).c_str(), stdout);
  std::fputs(api_line(*document).c_str(), stdout);
  std::fputs(scheduling_line(*document).c_str(), stdout);
  std::fputs(metrics_line(*document).c_str(), stdout);
  return 0;
}

}  // namespace

void add_status(ArgumentParser& app, CliCommand& chosen) {
  auto json = std::make_shared<bool>();
  auto* status = app.add_subcommand("status", "The node's signals, thresholds and conditions");
  status->group(kInspectGroup);
  status->add_flag("--json", *json, "Print headroomd's status document as JSON");
  status->callback([&chosen, json] { chosen = [json] { return run_status(*json); }; });
}

}  // namespace headroom::ctl
