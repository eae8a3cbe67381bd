// SPDX-License-Identifier: Apache-2.0
// AuditTail: the last records of the audit log as one JSON array, oldest first, read line by line
// while the client reads the answer.
#pragma once

#include "report/http/response_body.h"

#include <headroom/result.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

namespace headroom::report {

class AuditTail final : public ChunkedBody {
 public:
  static constexpr std::size_t kMax = 100;                   // records
  static constexpr std::int64_t kMaxBytesFromEnd = 8 << 20;  // bytes back from the end of the log

  // A missing log is an empty list: the file is created at the first eviction.
  static Result<std::unique_ptr<AuditTail>> open(const std::string& file, std::size_t last);

 private:
  bool append_chunk(std::string& out) override;

  std::ifstream log_;
  std::int64_t bytes_left_ = 0;  // bytes of whole lines
  bool opened_ = false;
  bool closed_ = false;
  bool had_record_ = false;
};

// Changes whenever the log does; "" if the log is missing.
std::string audit_etag(const std::string& file);

}  // namespace headroom::report
