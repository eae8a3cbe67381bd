// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/complaint.h"

namespace headroom::config {

std::string to_string(const Complaint& complaint) {
  std::string text;
  if (!complaint.file.empty()) text += complaint.file + ":";
  if (complaint.line > 0) text += std::to_string(complaint.line) + ":";
  if (!text.empty()) text += " ";
  return text + complaint.what;
}

}  // namespace headroom::config
