# SPDX-License-Identifier: Apache-2.0
"""The tests of the BPF programs (tests/bpf) on each kernel, with cgroup v2 alone: they hook functions that not every kernel lets one
hook, and the machine that builds may be one of these. With them the soak of writes to cgroups."""

import bpf_tests
from lab import Skip

PAYLOAD = bpf_tests.PAYLOAD
MEMORY = "3G"
CPUS = 2


def test_the_programs_do_the_same_on_this_kernel(vm):
    if any(name.startswith("Throttles.") for name in bpf_tests.run(vm)):
        raise Skip("the throttle program is not loaded on this kernel")


def test_only_the_cgroup_that_was_looked_at_is_written(vm):
    """tests/act/write_soak_test.cc with real cgroups: the machine that builds may not have the controllers of memory and CPU sets."""
    out = vm.run("HEADROOM_SOAK_ROUNDS=2000 /opt/headroom/bin/bpf --gtest_brief=1 --gtest_filter='IdentitySoak.*' 2>&1", check=True,
                 timeout=300).out
    print(f"    {next(line for line in out.splitlines() if 'rounds' in line)}")
    assert "rounds with cgroups" in out, out
