# SPDX-License-Identifier: Apache-2.0
"""A minute of what `make soak-cpus` does for as long as one likes: twenty pinned pods at once come and go."""

import json

import cpu_soak

MEMORY, CPUS, TOPOLOGY, NUMA = cpu_soak.MEMORY, cpu_soak.CPUS, cpu_soak.TOPOLOGY, cpu_soak.NUMA
KERNELS = ("6.12",)


def test_twenty_at_once_come_and_go_while_the_daemon_is_killed_and_its_file_lost(vm):
    row = cpu_soak.run(vm, minutes=1, seed=7)
    print("    " + json.dumps(row))
    assert not cpu_soak.faults(row), row
