// SPDX-License-Identifier: Apache-2.0
// /metrics/resource, the kubelet's resource metrics: CPU and memory of the node, its pods and their
// containers, each sample with its time.
#pragma once

#include "report/http/response_body.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/summary/summary.h"

#include <string>
#include <vector>

namespace headroom::report {

class ResourceMetricsBody final : public ChunkedBody {
 public:
  ResourceMetricsBody(const SummarySetup& setup, Format format);

  // What the samples of a family describe.
  enum class ResourceScope : std::uint8_t { kNode, kPod, kContainer };

 private:
  struct Subject {
    std::size_t record = 0;
    std::string labels;  // ready to be written; "" for the node
  };
  bool append_chunk(std::string& out) override;
  void append_family(std::string& out, std::size_t family) const;
  void append_node_memory(std::string& out) const;
  void append_node_swap(std::string& out) const;
  void append_errors(std::string& out) const;
  std::string timestamp(WallTime time) const;

  const Format format_;
  Published<NodeView>::ReadGuard node_;
  Published<CgroupTable>::ReadGuard cgroups_;
  WallTime node_time_;
  WallTime time_;
  std::vector<Subject> nodes_, pods_, containers_;
  std::size_t family_ = 0;
};

}  // namespace headroom::report
