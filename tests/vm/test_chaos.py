# SPDX-License-Identifier: Apache-2.0
"""A short form of `make chaos` and of `make soak`: faults and load from a seed that is printed."""

import json

import chaos_run
from node import Node
from standstill import LIMIT, Standstill

MEMORY, CPUS = chaos_run.MEMORY, chaos_run.CPUS
METRICS_PORT = 9750


def test_a_loop_that_stands_still_is_seen(vm):
    """As chaos watches for it; a daemon that runs is not taken for one."""
    with Node(vm) as node:
        node.start(chaos_run.configuration())
        watch = Standstill(vm)
        watch.start()
        try:
            vm.run(f"sleep {LIMIT + 2}", check=True)
            assert watch.read() == []
            vm.run(f"systemctl kill -s STOP headroomd.service; sleep {LIMIT + 1}; systemctl kill -s CONT headroomd.service", check=True)
            seen, = watch.read()
            assert any(name.endswith(" headroomd") and "do_signal_stop" in thread["stack"] for name, thread in seen["threads"].items()), seen
        finally:
            watch.stop()


def test_nothing_is_lost_or_left_behind_under_random_faults(vm):
    row = chaos_run.run(vm, seed=34, seconds=90)
    print("    " + json.dumps(row))
    assert not row["violations"], row
    assert row["evictions"] >= 3 and sum(row["faults"].values()) >= 20, row


def test_nothing_leaks_under_load(vm):
    row = chaos_run.run(vm, seed=21, seconds=60, faults=False)
    print("    " + json.dumps(row))
    assert not row["violations"], row
    assert row["evictions"] >= 5, row
