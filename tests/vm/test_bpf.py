# SPDX-License-Identifier: Apache-2.0
"""The tests of the BPF programs (tests/bpf) on each kernel, with cgroup v2 alone: they hook functions that not every kernel lets one
hook, and the machine that builds may be one of these."""

import json
from pathlib import Path

from lab import Skip

PAYLOAD = Path(__file__).resolve().parents[2] / "build/test/payload"
MEMORY = "3G"
CPUS = 2
REPORT = "/run/bpf.json"


def test_the_programs_do_the_same_on_this_kernel(vm):
    # systemd would take the controllers of the tests' cgroups away.
    out = vm.run(f"systemd-run --quiet --wait --pipe -p Delegate=yes -p Slice=headroom-test-bpf.slice "
                 f"/opt/headroom/bin/bpf --gtest_output=json:{REPORT}", timeout=900).out
    vm.run("systemctl stop headroom-test-bpf.slice", check=True)
    report = vm.run(f"cat {REPORT}").out
    assert report, out[-4000:]
    tests = [(f"{suite['name']}.{test['name']}", test) for suite in json.loads(report)["testsuites"] for test in suite["testsuite"]]
    failed = {name: test["failures"][0]["failure"] for name, test in tests if test.get("failures")}
    skipped = [name for name, test in tests if test.get("result") == "SKIPPED"]
    print(f"    {len(tests)} tests, skipped: {', '.join(skipped) or 'none'}")
    assert not failed, failed
    if any(name.startswith("Throttles.") for name in skipped):
        raise Skip("the throttle program is not loaded on this kernel")
