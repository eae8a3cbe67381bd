// SPDX-License-Identifier: Apache-2.0
// Site: what is served under which path.
#pragma once

#include "report/exposition/answer.h"
#include "report/metrics.h"
#include "report/page/page_site.h"
#include "report/summary/summary.h"

#include <atomic>
#include <cstdint>

namespace headroom::report {

// Asked on one thread: some answers tell what has changed since the last.
class Site {
 public:
  // `page.names`: this host's, beside its addresses and localhost.
  Site(MetricsSetup metrics, SummarySetup summary, PageSiteSetup page = {});
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  // Not after this is gone: bodies refer to it.
  Answer answer(const Request& request);
  // A request was turned away: too many at a time.
  void note_refused() { ++refused_; }
  std::uint64_t refused() const { return refused_; }

 private:
  std::atomic<std::uint64_t> refused_{0};
  PageSite page_;
  Metrics metrics_;
  SummarySetup summary_;
};

}  // namespace headroom::report
