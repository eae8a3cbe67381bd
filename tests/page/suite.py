# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, over a recording of a real daemon. HEADROOM_SHOTS=DIR leaves screenshots there."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import browser  # noqa: E402

BUILT = ROOT / "build/page"


def run() -> list[tuple[str, str, str]]:
    """[(name, status, reason)]"""
    try:
        BUILT.mkdir(parents=True, exist_ok=True)
        subprocess.run([ROOT / "userspace/report/page/assemble", BUILT], check=True)
        rows = browser.look("look.mjs", PAGE_BUILT=str(BUILT), PAGE_SHOTS=os.environ.get("HEADROOM_SHOTS", ""))
    except browser.NoBrowser as reason:
        return [("(the browser)", "skipped", str(reason))]
    except (AssertionError, subprocess.SubprocessError) as error:
        return [("(the browser)", "failed", str(error))]
    return [(row["name"], row["status"], row["reason"]) for row in rows]
