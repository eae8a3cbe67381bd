// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"
#include "ctl/simulate/simulate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using simulate::FleetResult;
using Kind = simulate::FleetEvent::Kind;

// Pixels.
constexpr double kWidth = 1080, kLeft = 150, kRight = 830, kTop = 84;
constexpr double kArea = 96, kBars = 34, kLane = 176, kCurves = 210;
constexpr double kPlot = kRight - kLeft;
constexpr std::size_t kColumns = 170;

// One colour for each agent, of a set that does not depend on telling red from green.
constexpr std::array<const char*, 4> kColours{"#0072b2", "#e69f00", "#009e73", "#8a8f98"};

const char* colour_of(const FleetResult& result) {
  return kColours[static_cast<std::size_t>(result.agent)];
}

constexpr const char* kStyle =
    "<style>text{font:13px system-ui,sans-serif;fill:#1f2933}.t{font-size:20px;font-weight:600}"
    ".s{fill:#616e7c}.n{font-size:17px;font-weight:600}.g{stroke:#d8dde3;stroke-width:1}"
    ".bg{fill:#fff}.oom{fill:#d0312d}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.s{fill:#9aa5b1}.g{stroke:#3e4c59}"
    ".bg{fill:#141a21}}</style>\n";

class Picture {
 public:
  Picture(const SimulatedFleet& fleet, const std::vector<FleetResult>& results)
      : fleet_(fleet), results_(results), seconds_(seconds_of(fleet.workload.length)) {}

  std::string draw() {
    const double curves_top = kTop + kLane * static_cast<double>(results_.size()) + 24;
    const double height = curves_top + kCurves + 56;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\">\n",
        kWidth, height);
    out_ += kStyle;
    add("<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    text(24, 36, "t",
         fmt::format("{} nodes, {}: the same pods under each agent", fleet_.workload.nodes,
                     report::human(fleet_.workload.length)));
    text(24, 58, "s",
         fmt::format("areas: memory in use · bars: evictions · red bars: kernel OOM kills · {}, "
                     "seed {}",
                     fleet_.source, fleet_.workload.seed));
    for (std::size_t i = 0; i < results_.size(); ++i)
      lane(results_[i], kTop + kLane * static_cast<double>(i));
    curves(curves_top);
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  void text(double x, double y, const char* style, std::string_view words,
            const char* anchor = "start") {
    add("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, style,
        anchor, words);
  }
  void line(double x1, double y1, double x2, double y2) {
    add("<line class=\"g\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1, y1, x2,
        y2);
  }
  double x_of(Instant at) const {
    return kLeft + kPlot * seconds_of(at.time_since_epoch()) / seconds_;
  }

  // --- one agent over time
  // ------------------------------------------------------------------------

  void lane(const FleetResult& result, double top) {
    text(24, top + 28, "n", simulate::name(result.agent));
    area(result, top);
    bars(result, top + kArea);
    numbers(result, top);
  }

  void area(const FleetResult& result, double top) {
    for (const double share : {0.0, 0.5, 1.0}) {
      const double y = top + kArea * (1 - share);
      line(kLeft, y, kRight, y);
      text(kLeft - 8, y + 4, "s", fmt::format("{:.0f} %", 100 * share), "end");
    }
    add("<path fill=\"{0}\" fill-opacity=\".25\" stroke=\"{0}\" d=\"M{1:.1f} {2:.1f}",
        colour_of(result), kLeft, top + kArea);
    for (const simulate::FleetSample& sample : result.samples)
      add("L{:.1f} {:.1f}", x_of(sample.at), top + kArea * (1 - std::min(sample.used, 1.0)));
    const double end = result.samples.empty() ? kLeft : x_of(result.samples.back().at);
    add("L{:.1f} {:.1f}Z\"/>\n", end, top + kArea);
  }

  using Counts = std::array<std::size_t, kColumns>;

  Counts count(const FleetResult& result, Kind kind) const {
    Counts counts{};
    for (const simulate::FleetIncident& incident : result.incidents) {
      if (incident.kind != kind) continue;
      const double share = (x_of(incident.at) - kLeft) / kPlot;
      ++counts[std::min(static_cast<std::size_t>(share * kColumns), kColumns - 1)];
    }
    return counts;
  }

  // The same scale for every agent: the height of a bar is the logarithm of its count.
  double bar_height(std::size_t value) {
    if (most_ == 0)
      for (const FleetResult& result : results_)
        for (const Kind kind : {Kind::kEvicted, Kind::kKernelOom})
          for (const std::size_t each : count(result, kind))
            most_ = std::max(most_, each);
    return (kBars - 4) * std::log2(1 + static_cast<double>(value)) /
           std::log2(1 + static_cast<double>(std::max<std::size_t>(most_, 1)));
  }

  void bars(const FleetResult& result, double top) {
    const Counts evictions = count(result, Kind::kEvicted), kills = count(result, Kind::kKernelOom);
    const double width = kPlot / kColumns;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const double x = kLeft + width * static_cast<double>(i);
      if (evictions[i] > 0)
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x,
            top + 4, width - 1, bar_height(evictions[i]), colour_of(result));
      if (kills[i] > 0)
        add("<rect class=\"oom\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
            x, top + 4 + kBars, width - 1, bar_height(kills[i]));
    }
  }

  void numbers(const FleetResult& result, double top) {
    const double x = kRight + 20;
    const simulate::NodeTotals& totals = result.totals;
    text(x, top + 16, "n", fmt::format("{} kernel OOM kills", totals.kernel_ooms));
    text(x, top + 40, "", fmt::format("{} evictions", totals.evictions));
    text(
        x, top + 60, "s",
        fmt::format("{} victims out of order", totals.wrong_victims + totals.wrong_kernel_victims));
    text(x, top + 80, "s", fmt::format("{} evictions not needed", totals.unneeded));
    text(x, top + 100, "s", fmt::format("{:.0f} CPU hours of work lost", totals.work_lost / 3600));
  }

  // --- how long a decision took
  // -------------------------------------------------------------------

  // From 0.1 ms to 100 s, in decades.
  static double x_of_latency(Duration latency) {
    const double seconds = std::max(seconds_of(latency), 1e-4);
    return kLeft + kPlot * std::min((std::log10(seconds) + 4) / 6, 1.0);
  }

  void curves(double top) {
    text(24, top + 16, "n", "Time to decide");
    text(24, top + 36, "s", "after the threshold");
    text(24, top + 54, "s", "was crossed");
    constexpr std::array<const char*, 7> kLabels{"0.1 ms", "1 ms", "10 ms", "100 ms",
                                                 "1 s",    "10 s", "100 s"};
    for (std::size_t i = 0; i < kLabels.size(); ++i) {
      const double x = kLeft + kPlot * static_cast<double>(i) / (kLabels.size() - 1);
      line(x, top, x, top + kCurves);
      text(x, top + kCurves + 20, "s", kLabels[i], "middle");
    }
    for (const double share : {0.0, 0.5, 1.0}) {
      const double y = top + kCurves * (1 - share);
      line(kLeft, y, kRight, y);
      text(kLeft - 8, y + 4, "s", fmt::format("{:.0f} %", 100 * share), "end");
    }
    double label = top + 16;
    for (const FleetResult& result : results_)
      if (!result.totals.latencies.empty()) curve(result, top, label);
  }

  void curve(const FleetResult& result, double top, double& label) {
    const auto& latencies = result.totals.latencies;
    add("<path fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\" d=\"M{:.1f} {:.1f}",
        colour_of(result), x_of_latency(latencies.front()), top + kCurves);
    constexpr std::size_t kPoints = 200;
    for (std::size_t i = 0; i <= kPoints; ++i) {
      const std::size_t index = i * (latencies.size() - 1) / kPoints;
      add("L{:.1f} {:.1f}", x_of_latency(latencies[index]),
          top + kCurves * (1 - static_cast<double>(i) / kPoints));
    }
    add("\"/>\n<text x=\"{:.0f}\" y=\"{:.0f}\" style=\"fill:{}\">{}: {} at the median</text>\n",
        kRight + 20, label, colour_of(result), simulate::name(result.agent),
        report::human(latencies[latencies.size() / 2]));
    label += 20;
  }

  const SimulatedFleet& fleet_;
  const std::vector<FleetResult>& results_;
  const double seconds_;
  std::size_t most_ = 0;  // the highest bar of any agent
  std::string out_;
};

}  // namespace

std::string fleet_svg(const SimulatedFleet& fleet, const std::vector<FleetResult>& results) {
  return Picture(fleet, results).draw();
}

}  // namespace headroom::ctl
