# SPDX-License-Identifier: Apache-2.0
"""The tests of the BPF programs (tests/bpf) on each kernel, with cgroup v2 alone: they hook functions that not every kernel lets one
hook, and the machine that builds may be one of these."""

import bpf_tests
from lab import Skip

PAYLOAD = bpf_tests.PAYLOAD
MEMORY = "3G"
CPUS = 2


def test_the_programs_do_the_same_on_this_kernel(vm):
    if any(name.startswith("Throttles.") for name in bpf_tests.run(vm)):
        raise Skip("the throttle program is not loaded on this kernel")
