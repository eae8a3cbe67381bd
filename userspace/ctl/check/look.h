// SPDX-License-Identifier: Apache-2.0
// Looking at this host. Nothing is changed: BPF programs are loaded and let go again.
#pragma once

#include "ctl/check/facts.h"

namespace headroom::ctl::check {

Facts look_at_host();

// Its parts, by where they look.
void look_at_bpf(Facts& facts);
void look_at_processes(Facts& facts);
void look_at_bus(Facts& facts);

}  // namespace headroom::ctl::check
