# SPDX-License-Identifier: Apache-2.0
"""What headroomd's files say and what is in force: drop-ins, reload, and headroomctl config and pods."""

import json

from node import ETC, Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
PATIENT = True

DROP_IN = "headroom:\n  mode: observe\n  checkFloor: 4ms\n"


def settings(vm):
    settings = json.loads(vm.run("headroomctl config --json", check=True).out)["settings"]
    return {each["path"] + ("/" + each["entry"] if "entry" in each else ""): each for each in settings}


def test_drop_ins_win_and_what_waits_for_a_restart_says_so(vm):
    with Node(vm) as node:
        vm.run(f"mkdir -p {ETC}/headroom.yaml.d", check=True)
        vm.put(DROP_IN.encode(), f"{ETC}/headroom.yaml.d/10-mode.yaml")
        node.start(kubelet_configuration("1Mi", mode="enforce"))
        now = settings(vm)
        assert (now["headroom.mode"]["value"], now["headroom.mode"]["origin"]) == (
            "observe", f"{ETC}/headroom.yaml.d/10-mode.yaml:2"), now["headroom.mode"]
        assert now["evictionHard/memory.available"]["origin"].startswith(f"{ETC}/headroom.yaml:"), now
        assert now["headroom.fastestFill"]["origin"] == "found" and now["headroom.fastestFill"]["value"] > 0, now
        assert node.status()["mode"] == "observe"

        vm.put(b"cgroupRoot: /elsewhere\nheadroom: {mode: enforce, listen: ''}\n", f"{ETC}/headroom.yaml.d/20-more.yaml")
        vm.run("systemctl reload headroomd", check=True)
        vm.wait_until("headroomctl status --json | grep -q '\"mode\":\"enforce\"'", timeout=20)
        listen = settings(vm)["headroom.listen"]
        assert (listen["value"], listen["next"]) == ("127.0.0.1:9750", ""), listen
        assert settings(vm)["cgroupRoot"]["next"] == "/elsewhere"
        text = vm.run("headroomctl config", check=True).out
        assert "; from the next start \"\", " in text, text

        # What it prints can be its configuration.
        vm.run(f"rm -r {ETC}/headroom.yaml.d; headroomctl config > /tmp/c.yaml && cp /tmp/c.yaml {ETC}/headroom.yaml",
               check=True)
        checked = vm.run(f"headroomd --check-config --config {ETC}/headroom.yaml")
        assert checked.code == 0, checked.out


def test_a_broken_drop_in_keeps_the_old_and_names_the_line(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration("1Mi", mode="observe"))
        vm.run(f"mkdir -p {ETC}/headroom.yaml.d", check=True)
        vm.put(b"headroom:\n  mode: enforse\nmaxPodz: 1\n", f"{ETC}/headroom.yaml.d/1.yaml")
        vm.run("systemctl reload headroomd", check=True)
        vm.wait_until("journalctl -b -u headroomd | grep -q 'is not reloaded'", timeout=20)
        journal = node.journal()
        for line in ("1.yaml:2: headroom.mode", "1.yaml:3: unknown key maxPodz"):
            assert f"{ETC}/headroom.yaml.d/{line}" in journal, journal
        assert node.status()["mode"] == "observe"


def test_pods_are_listed_in_the_order_asked_for(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration("1Mi", mode="observe"))
        node.run_pod(Pod("small"), "--hold 20M")
        node.run_pod(Pod("large", priority=5), "--hold 80M")
        vm.wait_until("[ $(headroomctl pods | wc -l) = 3 ]", timeout=30)
        vm.wait_until("headroomctl pods --sort workingset | sed -n 2p | grep -q ^large", timeout=30)
        listed = json.loads(vm.run("headroomctl pods --json --sort priority", check=True).out)
        assert [pod["name"] for pod in listed] == ["small", "large"], listed
        assert vm.run("headroomctl pods --sort nonsense").code == 2
        print(vm.run("headroomctl pods", check=True).out)


def test_another_user_may_read_and_not_change(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration("1Mi", mode="observe"))
        unprivileged = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        for command in ("status", "config", "pods"):
            vm.run(f"{unprivileged} headroomctl {command}", check=True)
        refused = vm.run(f"{unprivileged} headroomctl taint a=b:NoSchedule")
        assert refused.code == 1 and "only root and users allowed by polkit may" in refused.out, refused.out
        call = "busctl call io.headroom.Headroom1 /io/headroom/Headroom1 io.headroom.Headroom1 Taint asb 1 a=b:NoSchedule 0"
        assert "denied" in vm.run(f"{unprivileged} {call}").out
        shown = vm.run(f"{unprivileged} busctl introspect io.headroom.Headroom1 /io/headroom/Headroom1", check=True).out
        for name in (".MemoryPressure", ".Source", ".Evicted", ".Config"):
            assert name in shown, shown
        assert node.status()["taints"] == [], node.status()["taints"]
