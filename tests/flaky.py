# SPDX-License-Identifier: Apache-2.0
"""The history of tests of the lab that passed only when they were run again.

One line a run in `lab-history.jsonl` of the cache: the tests that ran, and of those that needed a second run why the first one failed.
A test without such an entry is not flaky; the file may be deleted at any time.
"""
import json
import os
from pathlib import Path

KEPT_RUNS = 50


def history_file() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HEADROOM_CACHE") or Path(home) / "headroom") / "lab-history.jsonl"


def read(path: Path) -> list[dict]:
    runs = []
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return runs
    for line in lines:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:  # a run that was interrupted while it wrote
            continue
    return runs


def add(path: Path, rows: list[tuple[str, str, str, str]]) -> list[dict]:
    """Adds this run's rows (suite, name, status, reason) and returns the runs that are kept, this one last."""
    run = {"ran": sorted(name for _, name, status, _ in rows if status != "skipped"),
           "flaky": {name: reason.strip().splitlines()[0][:300] for _, name, status, reason in rows if status == "passed" and reason.strip()}}
    runs = (read(path) + [run])[-KEPT_RUNS:]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(each) + "\n" for each in runs))
        fresh.replace(path)
    except OSError as error:
        print(f"  the history of flaky tests was not written: {error}")
    return runs


def summary(runs: list[dict]) -> list[str]:
    """A line for each test that was flaky in the last of `runs`, with how often it was in all of them."""
    lines = []
    for name, reason in sorted(runs[-1]["flaky"].items()):
        ran = sum(name in run["ran"] for run in runs)
        flaky = sum(name in run["flaky"] for run in runs)
        lines.append(f"  FLAKY   vm {name}: passed only when it was run again, in {flaky} of its last {ran} runs here\n      {reason}")
    return lines
