// SPDX-License-Identifier: Apache-2.0
// PublishedViews: what the loop publishes for the threads of HTTP, D-Bus and forecasts, and what
// the last publishes. It is created before these threads, shared with them, and outlives them.
#pragma once

#include "judge/forecast/peak_forecast.h"
#include "report/view/event_log.h"
#include "report/view/node_history.h"
#include "report/view/node_view.h"
#include "report/view/published.h"

namespace headroom::report {

struct PublishedViews {
  Published<NodeView> node;
  Published<CgroupTable> cgroups;
  NodeHistory history;
  EventLog events{};
  Published<PeakForecast::Records> memory_forecasts{};
};

}  // namespace headroom::report
