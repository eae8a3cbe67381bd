// SPDX-License-Identifier: Apache-2.0
// ViewPublisher: publishes the views of the node and of its cgroups, at most once per
// kPublishPeriod unless something happened. Used on the loop's thread.
#pragma once

#include "report/view/node_view.h"
#include "report/view/published_views.h"
#include "report/view/turn_cost.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

namespace headroom::report {

class ViewPublisher {
 public:
  // The time between two publications, unless something happened. Readers read once a second or
  // less often.
  static constexpr Duration kPublishPeriod = std::chrono::milliseconds(200);

  // `names` is used when cgroups are published, and must outlive this object.
  ViewPublisher(std::shared_ptr<PublishedViews> views, const CgroupNames* names,
                std::filesystem::path audit_log)
      : views_(std::move(views)), names_(names), audit_log_(std::move(audit_log)) {}

  // The source of each group, after each self-check.
  void set_sources(const Sources& sources) { sources_ = sources; }
  // The status is published in the next turn, without waiting for the period.
  void set_status(NodeStatusRef status) {
    status_ = std::move(status);
    status_changed_ = true;
  }
  void set_slices(SlicesRef slices) { slices_ = std::move(slices); }
  void set_programs(const Programs& programs) { programs_ = programs; }

  // Does nothing if the snapshot has no cgroups, or if nothing `changed` and the last publication
  // is younger than the period.
  void publish_cgroups(const Snapshot& snapshot, bool changed);
  // True: publish_node() is to be called in this turn.
  bool is_node_due(Instant at, bool changed) const;
  // True: the mode, a condition or a source differs from the publication before.
  bool publish_node(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
                    const Counters& counters, const ProcessUsage& usage);

 private:
  const std::shared_ptr<PublishedViews> views_;
  const CgroupNames* const names_;
  const std::filesystem::path audit_log_;
  Sources sources_{};
  NodeStatusRef status_;
  bool status_changed_ = false;
  SlicesRef slices_;
  Programs programs_{};
  std::optional<Instant> node_published_at_;
  std::optional<Instant> cgroups_published_at_;
  std::optional<Instant> swept_at_;
  std::uint64_t cgroups_ = 0;
};

}  // namespace headroom::report
