// SPDX-License-Identifier: Apache-2.0
// LibbpfLog: while one is alive, what libbpf would print on this thread goes to its function
// instead of stderr. The last warnings are kept, to say why a load failed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace headroom::observe {

using LogLine = std::function<void(std::string_view)>;

class LibbpfLog {
 public:
  explicit LibbpfLog(LogLine line);
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // What an errno is called, and the last warning if there was one: "Invalid argument (libbpf: …)".
  std::string reason(int code) const;

  void take(bool warning, std::string_view text);  // called by libbpf's printer

 private:
  LogLine line_;
  std::string last_warning_;
  LibbpfLog* outer_;
};

}  // namespace headroom::observe
