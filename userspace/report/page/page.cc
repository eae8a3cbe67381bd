// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include "page.inc"  // written by `assemble`: kPage and kPolicy

namespace headroom::report {

std::string_view page_html() {
  return kPage;
}

std::string_view page_policy() {
  return kPolicy;
}

}  // namespace headroom::report
