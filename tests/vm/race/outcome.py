# SPDX-License-Identifier: Apache-2.0
"""What came of a race, from the trace and the samples: pure, so that it can be read apart from the machine."""

from dataclasses import dataclass

from .samples import Sample, crossing
from .trace import Event

BYSTANDERS = ("systemd", "init")  # systemd sends what is left of a dead unit its own signals


@dataclass(frozen=True)
class Outcome:
    killer: str  # the name of the task that sent the hog its deadly signal, "kernel" or "none"
    crossing_to_kill_ms: float | None  # unknown without a crossing
    sample_gap_ms: float | None  # between the samples on both sides of the crossing
    kill_to_gone_ms: float | None
    wrong: tuple[str, ...]  # pods that were sent a deadly signal beside the hog
    kernel_oom_kills: int


def milliseconds(since: float | None, until: float | None) -> float | None:
    return None if since is None or until is None else (until - since) * 1e3


def judge(events: list[Event], samples: list[Sample], others: dict[int, str], quantity: str, threshold: int) -> Outcome:
    signals = [event for event in events if event.name == "signal_generate" and event.by not in BYSTANDERS]
    wrong = tuple(sorted({others[event.pid] for event in signals if event.pid in others}))
    chosen = {event.pid for event in events if event.name == "mark_victim"}
    kill = next((event for event in signals if event.pid not in others), None)
    if not kill:
        return Outcome("none", None, None, None, wrong, len(chosen))
    # Counters are kept per CPU and folded later: a sample may show the crossing a moment after the daemon saw it.
    crossed = crossing([sample for sample in samples if sample.at <= kill.at + 1], quantity, threshold)
    gone = next((event.at for event in events if event.name == "sched_process_exit" and event.pid == kill.pid), None)
    return Outcome("kernel" if kill.pid in chosen else kill.by, milliseconds(crossed.at if crossed else None, kill.at),
                   crossed.gap * 1e3 if crossed else None, milliseconds(kill.at, gone), wrong, len(chosen))
