# SPDX-License-Identifier: Apache-2.0
"""headroomctl pods, and what another user may do."""

import json

from node import Node, Pod, kubelet_configuration


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
        nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        for command in ("status", "pods"):
            vm.run(f"{nobody} headroomctl {command}", check=True)
        refused = vm.run(f"{nobody} headroomctl taint a=b:NoSchedule")
        assert refused.code == 1 and "only root may" in refused.out, refused.out
        assert node.status()["taints"] == [], node.status()["taints"]
