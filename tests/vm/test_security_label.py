# SPDX-License-Identifier: Apache-2.0
"""AppArmor: beside a process with another label than its own, headroom-commands runs no command, as it could not give it that label."""

from disk_node import configuration, evicted
from machine import debs
from node import Node, Pod

KERNELS = ("6.12",)
MEMORY = "1G"
METRICS_PORT = 9750
PROFILE = "headroom-test"


def load_profile(vm) -> None:
    """One that allows what the pod does: what matters is that it has a name."""
    for package in debs.of_debian(vm.kernel, ["apparmor"]).glob("*.deb"):
        vm.put(package, f"/run/{package.name}")
        vm.run(f"dpkg-deb -x /run/{package.name} /run/apparmor && rm /run/{package.name}", timeout=60, check=True)
    rules = "file, signal, ptrace, unix, network, capability,"
    vm.put(f"profile {PROFILE} {{ {rules} }}\n".encode(), "/run/profile")
    vm.run("/run/apparmor/usr/sbin/apparmor_parser --skip-cache --replace /run/profile", timeout=60, check=True)


def test_a_command_is_not_run_beside_a_process_with_another_label(vm):
    load_profile(vm)
    with Node(vm) as node:
        node.start(configuration({"memory.available": "60Mi"}, soft={"memory.available": "500Mi"}))
        for name, properties, runs in (("plain", [], True), ("labelled", [f"AppArmorProfile={PROFILE}"], False)):
            pod = Pod(name, pre_stop=["/bin/touch", f"/run/said-{name}"])
            node.run_pod(pod, f"--hold {node.holding_to_leave(300)}M", *properties)
            pid = vm.run(f"systemctl show -P MainPID {pod.unit}", check=True).out.strip()
            label = vm.run(f"cat /proc/{pid}/attr/current", check=True).out.strip()
            assert label.startswith(PROFILE) != runs, label
            evicted(node, 1 if runs else 2)
            assert (vm.run(f"test -e /run/said-{name}").code == 0) == runs, node.journal()
        assert "another security label" in node.journal()
