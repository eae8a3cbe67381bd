# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, over a recording of a real daemon. HEADROOM_SHOTS=DIR leaves screenshots there."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import browser  # noqa: E402


def run() -> list[tuple[str, str, str]]:
    """[(name, status, reason)]"""
    try:
        rows = browser.look("look.mjs", PAGE_BUILT=str(browser.assemble()), PAGE_SHOTS=os.environ.get("HEADROOM_SHOTS", ""))
    except browser.NoBrowser as reason:
        return [("(the browser)", "skipped", str(reason))]
    except (AssertionError, subprocess.SubprocessError) as error:
        return [("(the browser)", "failed", str(error))]
    return [(row["name"], row["status"], row["reason"]) for row in rows]
