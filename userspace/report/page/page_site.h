// SPDX-License-Identifier: Apache-2.0
// PageSite: the page at "/", and what it asks for once a second: the status document and the last
// evictions; now and then who has which CPUs. All of it is made on the thread that serves.
#pragma once

#include "report/exposition/answer.h"
#include "report/page/most_waiting.h"
#include "report/reporter.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::report {

struct PageSiteSetup {
  std::vector<std::string> names = {};     // the host's
  std::function<std::string()> cpus = {};  // as JSON, or "null": they are not dealt out
};

class PageSite {
 public:
  PageSite(std::shared_ptr<const Shown> shown, QosOf qos_of, PageSiteSetup setup = {})
      : shown_(std::move(shown)), qos_of_(qos_of), setup_(std::move(setup)) {}

  // Absent: the path is not one of these.
  std::optional<Answer> answer(const Request& request);

 private:
  std::optional<Answer> document(const Request& request);
  Answer status(const Request& request);
  Answer cpus() const;
  Answer evictions(const Request& request) const;

  std::shared_ptr<const Shown> shown_;
  QosOf qos_of_;
  PageSiteSetup setup_;
  MostWaiting most_waiting_;
};

}  // namespace headroom::report
