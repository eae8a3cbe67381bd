// SPDX-License-Identifier: Apache-2.0
// A cgroup's record, written as a mask of the 64-bit words that changed since the one before, and
// their differences.
#pragma once

#include "recording/wire.h"

#include <headroom/bpf/abi.h>

namespace headroom::recording {

// `known`: the record before; afterwards `now`.
void write_record(Writer& io, hr_record& known, const hr_record& now);
void read_record(Reader& io, hr_record& known);

}  // namespace headroom::recording
