// SPDX-License-Identifier: Apache-2.0
// probe_host(): reads the facts of this host. Nothing is changed: BPF programs are loaded and
// unloaded again.
#pragma once

#include "ctl/check/host_facts.h"

namespace headroom::ctl::check {

HostFacts probe_host();

// The parts of probe_host(), by source.
void probe_bpf(HostFacts& facts);
void probe_processes(HostFacts& facts);
void probe_bus(HostFacts& facts);

}  // namespace headroom::ctl::check
