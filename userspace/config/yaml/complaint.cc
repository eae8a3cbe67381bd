// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/complaint.h"

namespace headroom::config {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.file.empty()) text += diagnostic.file + ":";
  if (diagnostic.line > 0) text += std::to_string(diagnostic.line) + ":";
  if (!text.empty()) text += " ";
  return text + diagnostic.what;
}

}  // namespace headroom::config
