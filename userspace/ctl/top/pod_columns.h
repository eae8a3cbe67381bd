// SPDX-License-Identifier: Apache-2.0
// The columns of pods in `headroomctl top`: names, titles, cells and sort keys. A new column is one
// row of the table in the .cc file. Pure.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

// Rates of a pod between two statuses; absent if one of the totals is absent or no time has passed.
struct Rates {
  std::optional<double> cpus;            // CPU seconds per second
  std::optional<double> throttled;       // seconds per second
  std::optional<double> memory_waiting;  // seconds per second
  std::string stall = "-";               // the main cause of its waits, and their share
};
Rates rates_between(const PodStatus& before, const PodStatus& now, double elapsed_seconds);

struct PodSample {
  const PodStatus* pod = nullptr;  // never null
  Rates rates{};
};

// The pods of `now`; rates are unknown if `before` is null.
std::vector<PodSample> pod_samples(const Status* before, const Status& now);

struct PodColumn {
  std::string_view name;  // in --columns, --sort and the file of settings
  std::string_view title;
  std::string_view description;
  bool shown = true;  // by default
  Cell (*cell)(const PodSample&) = nullptr;
  // Highest first, absent keys last; null: by the text of the cell, A to Z.
  std::optional<double> (*key)(const PodSample&) = nullptr;
};

// All of them, in the order in which they are shown. The first is the pod.
std::span<const PodColumn> pod_columns();
const PodColumn* pod_column(std::string_view name);  // null: no such column

// What `top` shows, kept from one run to the next.
struct TopSettings {
  std::vector<std::string> columns;  // names of columns
  std::string sort = "over";         // the name of a column
  bool reversed = false;
};
TopSettings default_top_settings();
// The number of columns at the left that hold text, which is aligned left.
std::size_t left_columns(const TopSettings& settings);

// "pod,qos,over": names with commas between. The error lists the names that exist. The column of
// the pod is always added.
Result<std::vector<std::string>> parse_columns(std::string_view text);

// Sorted by the settings; equal pods by namespace and name.
void sort_pods(std::vector<PodSample>& samples, const TopSettings& settings);
// Whether each word of `filter` is in its namespace, name, QoS class or state; case is ignored.
bool matches_filter(const PodStatus& pod, std::string_view filter);

}  // namespace headroom::ctl
