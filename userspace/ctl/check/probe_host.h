// SPDX-License-Identifier: Apache-2.0
// Looking at this host. Nothing is changed: BPF programs are loaded and let go again.
#pragma once

#include "ctl/check/host_facts.h"

namespace headroom::ctl::check {

HostFacts probe_host();

// Its parts, by where they look.
void probe_bpf(HostFacts& facts);
void probe_processes(HostFacts& facts);
void probe_bus(HostFacts& facts);

}  // namespace headroom::ctl::check
