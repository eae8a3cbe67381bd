# SPDX-License-Identifier: Apache-2.0
"""A short form of `make chaos` and of `make soak`: faults and load from a seed that is printed."""

import json

import chaos_run

MEMORY, CPUS = chaos_run.MEMORY, chaos_run.CPUS
METRICS_PORT = 9750


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
