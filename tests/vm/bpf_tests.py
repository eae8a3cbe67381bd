# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the BPF programs (tests/bpf) in a guest, in a delegated cgroup: systemd would take the controllers of their
cgroups away otherwise."""

import json
from pathlib import Path

PAYLOAD = Path(__file__).resolve().parents[2] / "build/test/payload"
REPORT = "/run/bpf.json"


def run(vm, pattern: str = "*") -> list[str]:
    """Those skipped; fails if one failed or PATTERN, GoogleTest's, names none."""
    vm.run("modprobe loop", check=True)
    out = vm.run(f"systemd-run --quiet --wait --pipe -p Delegate=yes -p Slice=headroom-test-bpf.slice "
                 f"/opt/headroom/bin/bpf --gtest_filter='{pattern}' --gtest_output=json:{REPORT}", timeout=900).out
    vm.run("systemctl stop headroom-test-bpf.slice", check=True)
    report = vm.run(f"cat {REPORT}").out
    assert report, out[-4000:]
    tests = [(f"{suite['name']}.{test['name']}", test) for suite in json.loads(report)["testsuites"] for test in suite["testsuite"]]
    failed = {name: test["failures"][0]["failure"] for name, test in tests if test.get("failures")}
    skipped = [name for name, test in tests if test.get("result") == "SKIPPED"]
    print(f"    {len(tests)} tests, skipped: {', '.join(skipped) or 'none'}")
    assert tests, f"no test matches {pattern}"
    assert not failed, failed
    return skipped
