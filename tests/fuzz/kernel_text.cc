// SPDX-License-Identifier: Apache-2.0
// The texts of cgroupfs: a number that cannot be read is unknown, never made up.
#include "fuzz.h"
#include "observe/cgroup/stat_text.h"

#include <headroom/bpf/abi.h>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  using namespace headroom::observe;
  const std::string_view text = fuzz::text_of(bytes, size);
  if (const auto count = count_in(text)) {
    fuzz::promise(text.find_first_not_of("0123456789\n") == text.npos, "a count is digits");
    fuzz::promise(limit_in(text) == count, "and as a limit the same");
  }
  std::size_t lines = 0;
  for (FlatKeyed line(text); line.next(); ++lines)
    fuzz::promise(line.key().find('\n') == std::string_view::npos, "a key is within its line");
  fuzz::promise(lines <= size, "no line is read twice");
  (void)pressure_total(text, "some");
  (void)quota_in(text);
  (void)io_totals(text);
  return 0;
}
