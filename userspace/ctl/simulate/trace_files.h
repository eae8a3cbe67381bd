// SPDX-License-Identifier: Apache-2.0
// The files of --trace, for the commands that read traces.
#pragma once

#include "ctl/common/print_error.h"
#include "simulate/trace/trace_reader.h"

#include <headroom/result.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headroom::ctl {

// Collects what is wrong with the command line and with its files.
class Errors {
 public:
  void add(std::string what) { all_.push_back(std::move(what)); }
  bool any() const { return !all_.empty(); }
  const std::vector<std::string>& all() const { return all_; }
  // Returns the exit status.
  int print() const {
    for (const std::string& what : all_)
      print_error(Error{what});
    return kUsage;
  }

 private:
  std::vector<std::string> all_;
};

// The whole file; - is standard input.
Result<std::string> read_text(const std::string& name);

struct Traces {
  std::vector<std::shared_ptr<const simulate::MemorySeries>> series;
  std::vector<simulate::Arrival> arrivals;
};

// Adds what FORMAT=FILE names; of azure-v1 FORMAT=FILE,FLAVOURS. `skip_errors`: lines with errors
// are left out, and the errors are printed.
void read_trace_option(const std::string& option, bool skip_errors, Traces& traces, Errors& errors);

}  // namespace headroom::ctl
