// SPDX-License-Identifier: Apache-2.0
// PageSite: the page at "/", and what it asks for once a second: the status document and the last
// evictions. All of it is made on the thread that serves.
#pragma once

#include "report/exposition/answer.h"
#include "report/reporter.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::report {

class PageSite {
 public:
  PageSite(std::shared_ptr<const Shown> shown, QosOf qos_of, std::vector<std::string> names = {})
      : shown_(std::move(shown)), qos_of_(qos_of), names_(std::move(names)) {}

  // Absent: the path is not one of these.
  std::optional<Answer> answer(const Request& request) const;

 private:
  std::optional<Answer> document(const Request& request) const;
  Answer status() const;
  Answer evictions(const Request& request) const;

  std::shared_ptr<const Shown> shown_;
  QosOf qos_of_;
  std::vector<std::string> names_;  // the host's
};

}  // namespace headroom::report
