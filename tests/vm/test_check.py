# SPDX-License-Identifier: Apache-2.0
"""headroomctl check on a real host: what works, what is missing, and who else kills there."""

import json

from node import Node, kubelet_configuration

CORE = True
PATIENT = True


def check(vm, prefix=""):
    result = vm.run(f"{prefix} headroomctl check --json", timeout=60)
    document = json.loads(result.out)
    return result.code, {each["check"]: each for each in document["checks"]}


def states(checks):
    return {name: each["state"] for name, each in checks.items()}


def test_before_the_daemon_runs_all_but_it_is_there(vm):
    code, checks = check(vm)
    assert code == 0, checks
    found = states(checks)
    for subject in ("cgroup v2", "controllers", "cgroup.kill", "pressure (PSI)", "BTF", "kallsyms", "BPF sweep",
                    "BPF stall", "BPF throttle", "BPF lifecycle", "systemd", "configuration", "other programs that kill"):
        assert found[subject] == "ok", checks[subject]
    assert checks["headroomd"]["details"] == "not running", checks["headroomd"]
    print(vm.run("headroomctl check", check=True).out)


def test_with_the_daemon_its_process_is_looked_at(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration("1Mi", mode="observe"))
        code, checks = check(vm)
        assert code == 0, checks
        assert checks["headroomd"]["details"] == "running, mode observe", checks["headroomd"]
        assert "for headroomd" in checks["descriptors"]["details"], checks["descriptors"]
        found = states(checks)
        assert (found["memory lock"], found["OOM score"]) == ("ok", "ok"), checks


def test_another_user_sees_what_was_not_checked(vm):
    code, checks = check(vm, "setpriv --reuid=65534 --regid=65534 --clear-groups")
    assert code == 0, checks
    found = states(checks)
    for subject in ("privilege", "BPF sweep", "BPF programs", "kfuncs", "kallsyms"):
        assert found[subject] == "unknown", checks[subject]
    assert found["cgroup v2"] == "ok", checks["cgroup v2"]


def test_another_killer_is_named_and_a_wrong_configuration_fails(vm):
    vm.run("cp $(command -v sleep) /tmp/earlyoom", check=True)
    unit = vm.spawn("exec /tmp/earlyoom 600")
    try:
        vm.wait_until("pgrep -x earlyoom", timeout=10)
        _, checks = check(vm)
        assert checks["other programs that kill"]["details"] == "earlyoom running", checks["other programs that kill"]
        vm.run("mkdir -p /etc/headroom; printf 'evictionHard: 5\\n' > /etc/headroom/headroom.yaml", check=True)
        code, checks = check(vm)
        assert (code, checks["configuration"]["state"]) == (1, "missing"), checks["configuration"]
        assert "/etc/headroom/headroom.yaml:1:" in checks["configuration"]["details"], checks["configuration"]
    finally:
        vm.stop(unit)
        vm.run("rm -rf /etc/headroom /tmp/earlyoom")
