# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with the pages of tests/fixtures/metrics as its past: counters grow, gauges stay."""

import contextlib
import re
import socket
import tempfile
import time
from pathlib import Path

from machine import prometheus

STEP, SPAN = 15, 3600  # seconds
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def labelled(inner: str | None, extra: str) -> str:
    return "{" + ",".join(part for part in (inner, extra) if part) + "}"


def counters(page: str) -> set[str]:
    return {name for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M) if kind in ("counter", "histogram")}


def grown(name: str, inner: str | None, value: float, turn: int, growing: set[str]) -> float:
    """Every counter and every bucket that holds 0.05 s grows by one in a step."""
    bound = re.search(r'le="([^"]+)"', inner or "")
    if name.endswith("_bucket") and bound and float(bound[1]) < 0.05:
        return value
    return value + turn if name in growing or re.sub(r"_(bucket|sum|count)$", "", name) in growing else value


def history(page: str, instance: str, end: int) -> str:
    """OpenMetrics text of SPAN seconds, as scraped from INSTANCE by the job headroom."""
    extra, growing, lines = f'job="headroom",instance="{instance}"', counters(page), []
    samples = [match.groups() for match in map(SAMPLE.match, page.splitlines()) if match]
    for turn in range(SPAN // STEP):
        at = end - SPAN + turn * STEP
        lines.append(f"up{labelled(None, extra)} 1 {at}")
        lines += [f"{name}{labelled(inner, extra)} {grown(name, inner, float(value), turn, growing)} {at}"
                  for name, inner, value in samples]
    return "\n".join(lines) + "\n# EOF\n"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def recorded(*pages: tuple[str, str]):
    """(Prometheus, the time of the last sample); PAGES are (page, instance)."""
    with tempfile.TemporaryDirectory(prefix="headroom-test-") as folder:
        end = int(time.time()) // STEP * STEP
        for page, instance in pages:
            (Path(folder) / "history").write_text(history(page, instance, end))
            made = prometheus.promtool("tsdb", "create-blocks-from", "openmetrics", f"{folder}/history", f"{folder}/data")
            assert made.returncode == 0, made.stdout
        nothing = [{"job_name": "none", "static_configs": []}]
        with prometheus.Prometheus(Path(folder), "", [], free_port(), nothing) as running:
            yield running, end - STEP
