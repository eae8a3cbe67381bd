# SPDX-License-Identifier: Apache-2.0
"""When a signal crossed its threshold, between the samples on both sides of it: for bench-evict and bench-threshold."""

import itertools
import json
import struct


def minute_before(node, name: str) -> dict:
    """What the daemon saw before it evicted the pod NAME."""
    return json.loads(node.vm.run(f"headroomctl why {name} --json", check=True).out)["flight_recording"]


def crossing_to_decision_ms(record: dict, minute: dict) -> float:
    """For pods of steady speed; the latest two turns are the samples on both sides of the threshold."""
    (before, above), (after, below) = ((turn["ms"], turn["available"][record["signal"]]) for turn in minute["turns"][-2:])
    share = (above - record["threshold"]) / (above - below)
    return record["latency"]["crossing_to_decision_ms"] - (after - before) * share


class Filler:
    """When a pod of `workload --log` had taken how much; it is the only one that takes any."""

    def __init__(self, log: bytes):
        self.steps = [entry for entry in struct.iter_unpack("=QQ", log) if entry[0]]

    def taken(self, at: float) -> float:
        """Bytes, at these nanoseconds since boot."""
        return self._on_line(at, 0)

    def time_of(self, taken: float) -> float:
        return self._on_line(taken, 1)

    def _on_line(self, value: float, column: int) -> float:
        other = 1 - column
        for before, after in itertools.pairwise(self.steps):
            if value <= after[column]:
                break
        share = (value - before[column]) / (after[column] - before[column])
        return before[other] + (after[other] - before[other]) * share

    def crossed_at(self, record: dict, last_clear: int) -> float:
        """Nanoseconds since boot: back from the sample that was judged by what was missing there, or on from the last one above the
        threshold, which had LAST_CLEAR bytes, by what was left: the earlier of the two, for a sample can lag behind."""
        instants, missing = record["instants_ns"], record["threshold"] - record["available"]
        return min(self.time_of(self.taken(instants["sampled"]) - missing),
                   self.time_of(self.taken(instants["last_clear"]) + last_clear - record["threshold"]))
