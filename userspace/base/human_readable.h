// SPDX-License-Identifier: Apache-2.0
// Text for people: amounts and durations ("1.2Gi", "85ms"), never parsed back; and names from
// outside made printable.
#pragma once

#include <headroom/signal.h>
#include <headroom/units.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Text from processes, cgroups and files, fit for one line of a log and for JSON.

// Each byte of a control character or of a mark that changes the direction of text, and each byte
// that is not part of valid UTF-8, becomes '?'. The length stays.
std::string printable(std::string_view text);
void append_printable(std::string& to, std::string_view text);

}  // namespace headroom

namespace headroom::report {

// Two significant digits below ten, whole numbers above: "0", "512Mi", "1.2Gi", "-3Mi".
std::string human_bytes(std::int64_t count);
inline std::string human(Bytes bytes) {
  return human_bytes(bytes.count);
}

// "850us", "12ms", "1.5s", "45s", "3m20s", "2h5m", "3d4h".
std::string human(Duration duration);

// "1.50 CPUs".
std::string human_cpus(std::int64_t thousandths);

// Whether a signal's quantity is bytes; otherwise inodes, tasks or millionths.
bool is_byte_signal(Signal signal);
// A quantity of `signal`: bytes with a suffix, a count without.
std::string human_amount(Signal signal, std::int64_t amount);

}  // namespace headroom::report
