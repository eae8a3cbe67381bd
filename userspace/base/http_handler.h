// SPDX-License-Identifier: Apache-2.0
// What the handlers of libmicrohttpd's requests have in common.
#pragma once

#include <cstddef>

namespace headroom {

// A handler is called once with the headers alone, once with each piece of a body, and then to
// answer. True: now. `seen` is the request's own pointer, null at the first call; a body is
// dropped.
inline bool is_to_be_answered(void** seen, std::size_t* upload) {
  static int headers_seen;  // only its address is used
  if (!*seen) {
    *seen = &headers_seen;
    return false;
  }
  const bool complete = *upload == 0;
  *upload = 0;
  return complete;
}

}  // namespace headroom
