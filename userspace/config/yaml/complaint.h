// SPDX-License-Identifier: Apache-2.0
// Diagnostic: one error in the input, where it is, and what would be right.
//
// Readers collect diagnostics and read on, so that one run shows every error.
#pragma once

#include <string>
#include <vector>

namespace headroom::config {

struct Diagnostic {
  std::string file;  // or "--eviction-hard" for a flag
  int line = 0;      // 1-based; 0: no line
  std::string what;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};
using Diagnostics = std::vector<Diagnostic>;

// "file:line: what" (or "what" alone where neither is known).
std::string to_string(const Diagnostic& diagnostic);

}  // namespace headroom::config
