# SPDX-License-Identifier: Apache-2.0
"""More NUMA nodes than a word has bits, each with memory of its own."""

from test_large import expect_that_the_guard_sees

COUNTED = True
NUMA = 72
MEMORY = f"{NUMA * 128}M"  # the emulator wants the same of each node, in 8 MiB
METRICS_PORT = 9750


def test_the_guard_sees_the_last_of_them(vm):
    assert vm.run("cat /sys/devices/system/node/has_memory").out.strip() == f"0-{NUMA - 1}"
    expect_that_the_guard_sees(vm, NUMA - 1, room=30, workload="--rate 100M --until 115M", most_below=20)
