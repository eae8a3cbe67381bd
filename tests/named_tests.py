# SPDX-License-Identifier: Apache-2.0
"""The test_* functions of a suite, one after the other."""

import time
import traceback


def run_all(functions: dict) -> list[tuple[str, str, str]]:
    """[(name, status, reason)] of a module's globals()."""
    rows = []
    for name, test in list(functions.items()):
        if not name.startswith("test_"):
            continue
        began = time.monotonic()
        try:
            test()
            rows.append((name.removeprefix("test_"), "passed", ""))
        except Exception:  # a test may fail in any way; the others still run
            rows.append((name.removeprefix("test_"), "failed", traceback.format_exc(limit=-2)))
        print(f"{'ok' if rows[-1][1] == 'passed' else 'FAIL':4} {rows[-1][0]} ({time.monotonic() - began:.1f} s)", flush=True)
    return rows
