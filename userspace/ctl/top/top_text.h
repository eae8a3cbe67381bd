// SPDX-License-Identifier: Apache-2.0
// What `headroomctl top` prints without a full-screen view: a table, or labelled lines for a screen
// reader. Pure.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"
#include "ctl/top/pod_columns.h"

#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

struct TopRequest {
  TopSettings settings = default_top_settings();
  std::string filter{};
  std::string pod{};  // "namespace/name", name or uid: only this pod, with all that is known of it
};

const PodSample* find_pod(const std::vector<PodSample>& pods, std::string_view name);  // or null

// The pods that match the filter, sorted. `before` is null in the first frame: rates are unknown
// then. They point into `now`.
std::vector<PodSample> requested_pods(const Status* before, const Status& now,
                                      const TopRequest& request);
// The titles and a row for each pod.
std::vector<Row> pod_rows(const std::vector<PodSample>& pods, const TopSettings& settings);

// The node and the pods as tables.
std::string render_top(const Status* before, const Status& now, const Screen& screen,
                       const TopRequest& request = {});

// The same without tables: one line for each threshold and each pod, each value after its name.
std::string render_plain(const Status* before, const Status& now, const TopRequest& request);

// All that is known of one pod, a value a row.
std::vector<Row> pod_detail(const PodSample& sample, const Status& now);

}  // namespace headroom::ctl
