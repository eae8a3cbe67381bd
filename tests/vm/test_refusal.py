# SPDX-License-Identifier: Apache-2.0
"""A kernel on which headroom cannot work: one line says why and what to do, in this distribution's own commands."""

import json

from node import ETC, kubelet_configuration

PATIENT = True
CMDLINE = "cgroup_disable=memory"
FIX = "remove cgroup_disable= from GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot"


def test_headroomd_refuses_in_one_line(vm):
    vm.put(kubelet_configuration("100Mi").encode(), "/tmp/headroom.yaml")
    result = vm.run("headroomd --config /tmp/headroom.yaml 2>&1; code=$?; rm /tmp/headroom.yaml; exit $code", timeout=30)
    lines = result.out.strip().splitlines()
    assert result.code == 3 and len(lines) == 1, result.out
    assert "lacks memory" in lines[0] and FIX in lines[0], lines[0]


def test_systemd_does_not_start_it_again(vm):
    vm.put(kubelet_configuration("100Mi").encode(), f"{ETC}/headroom.yaml")
    vm.run("""sed s,/usr/sbin/,/opt/headroom/bin/, /opt/headroom/systemd/headroomd.service > /run/systemd/system/headroom-test.service
        systemctl daemon-reload; systemctl start headroom-test; true""", timeout=30, check=True)
    try:
        shown = vm.run("sleep 3; systemctl show headroom-test -p ActiveState -p NRestarts -p ExecMainStatus", check=True).out
        assert sorted(shown.split()) == ["ActiveState=failed", "ExecMainStatus=3", "NRestarts=0"], shown
    finally:
        vm.run("systemctl reset-failed headroom-test; rm -rf /run/systemd/system/headroom-test.service /etc/headroom; systemctl daemon-reload")


def test_check_names_the_fix_and_fails(vm):
    result = vm.run("headroomctl check --json", timeout=60)
    document = json.loads(result.out)
    found = {each["check"]: each for each in document["checks"]}
    assert result.code != 0 and not document["works"], document
    assert found["cgroup v2"]["state"] == "missing" and found["cgroup v2"]["remedy"] == FIX, found["cgroup v2"]
