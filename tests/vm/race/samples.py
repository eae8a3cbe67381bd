# SPDX-License-Identifier: Apache-2.0
"""Memory over time, as sampler.py saw it, and when it crossed a threshold."""

import signal
from dataclasses import dataclass
from pathlib import Path

SAMPLER = Path(__file__).with_name("sampler.py")
IN_GUEST = "/run/sampler.py"


@dataclass(frozen=True)
class Sample:
    at: float  # seconds, CLOCK_MONOTONIC
    available: int
    working_set_available: int
    anonymous: int
    total: int


class Sampler:
    """Samples while it is open."""

    def __init__(self, vm):
        self.vm = vm
        vm.put(SAMPLER, IN_GUEST)
        vm.run("rm -f /run/sampler")
        self.command = vm.start(f"exec python3 {IN_GUEST} || touch /run/sampler", timeout=180)
        vm.wait_until("[ -e /run/sampler ]")

    def stop(self) -> list[Sample]:
        self.vm.run(f"pkill -{signal.SIGTERM.value} -f '^python3 {IN_GUEST}'", check=True)
        lines = self.command.wait(check=True).out.splitlines()
        return [Sample(int(at) / 1e9, *(int(kib) << 10 for kib in rest)) for at, *rest in map(str.split, lines)]


def now(vm) -> Sample:
    sampler = Sampler(vm)
    return sampler.stop()[-1]


@dataclass(frozen=True)
class Crossing:
    at: float
    gap: float  # seconds between the samples on both sides


def crossing(samples: list[Sample], quantity: str, threshold: int) -> Crossing | None:
    """When QUANTITY first fell to THRESHOLD: where the line between the samples on both sides meets it."""
    for before, after in zip(samples, samples[1:]):
        above, below = getattr(before, quantity), getattr(after, quantity)
        if above > threshold >= below:
            gap = after.at - before.at
            return Crossing(before.at + gap * (above - threshold) / (above - below), gap)
    return None
