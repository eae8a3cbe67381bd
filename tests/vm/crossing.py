# SPDX-License-Identifier: Apache-2.0
"""When a signal crossed its threshold, between the samples on both sides of it: for bench-evict and bench-threshold."""

import json


def minute_before(node, name: str) -> dict:
    """What the daemon saw before it evicted the pod NAME."""
    return json.loads(node.vm.run(f"headroomctl why {name} --json", check=True).out)["flight_recording"]


def crossing_to_decision_ms(record: dict, minute: dict) -> float:
    """For pods of steady speed; the latest two turns are the samples on both sides of the threshold."""
    (before, above), (after, below) = ((turn["ms"], turn["available"][record["signal"]]) for turn in minute["turns"][-2:])
    share = (above - record["threshold"]) / (above - below)
    return record["latency"]["crossing_to_decision_ms"] - (after - before) * share
