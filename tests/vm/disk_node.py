# SPDX-License-Identifier: Apache-2.0
"""A node whose disks are test disks: pods write volumes, logs and writable layers there."""

import json
from dataclasses import dataclass

from node import Node, Pod

ROOT = "/mnt/disk"


def configuration(hard=None, transition="2s", enforce=("none",), soft=None, grace="1s", **headroom):
    """A KubeletConfiguration of any signals and a headroom section."""
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
              "enforceNodeAllocatable": list(enforce), "evictionHard": hard or {},
              "evictionPressureTransitionPeriod": transition, "evictionMaxPodGracePeriod": 10,
              "headroom": {"mode": "enforce", **headroom}}
    if soft:
        config |= {"evictionSoft": soft, "evictionSoftGracePeriod": {signal: grace for signal in soft}}
    return json.dumps(config)


def wait_for_condition(node, name, value, timeout=30):
    word = "true" if value else "false"
    node.vm.wait_until(f"headroomctl status --json | tr -d ' \\n' | grep -q '\"{name}\":{word}'", timeout=timeout)


def expect_fresh_pod_lives(node):
    fresh = node.run_script(Pod("fresh"), "exec sleep infinity")
    node.vm.run(f"headroomctl admit -f /etc/headroom/manifests/{fresh.name}.yaml && sleep 3", check=True)
    assert node.alive(fresh), "a pod that comes after the pressure stays"


def evicted(node, count):
    records = node.wait_for_evictions(count)
    return [record["pod"]["name"] for record in records], records


@dataclass
class Disk:
    """A filesystem in a file, mounted at ROOT/name."""
    name: str
    size: str = "160M"
    features: str = ""  # mke2fs -O
    options: str = "loop"
    inodes: int = 0  # 0: as mke2fs thinks fit

    @property
    def path(self) -> str:
        return f"{ROOT}/{self.name}"

    def make(self, vm) -> None:
        features = f"-O {self.features}" if self.features else ""
        inodes = f"-N {self.inodes}" if self.inodes else ""
        vm.run(f"""modprobe loop; truncate -s {self.size} {self.path}.img
            mke2fs -q -t ext4 -m0 -E lazy_itable_init=1 -J size=4 {features} {inodes} {self.path}.img
            mkdir -p {self.path} && mount -o {self.options} {self.path}.img {self.path}""", check=True, timeout=60)

    def remove(self, vm) -> None:
        vm.run(f"umount {self.path}; rm -rf {self.path} {self.path}.img", check=True, timeout=60)


class DiskNode(Node):
    """Its nodefs is the test disk, or the first of the disks below it."""

    def __init__(self, vm, *disks):
        super().__init__(vm)
        self.disks = disks

    @property
    def nodefs(self) -> str:
        return self.disks[0].path if self.disks else ROOT

    def __enter__(self):
        for disk in self.disks:
            disk.make(self.vm)
        paths = " ".join([ROOT, *(disk.path for disk in self.disks)])
        # Commands of headroom.reclaim, where a test has any, remove files of root below them.
        self.vm.run(f"""cd /run/systemd/system; mkdir headroom-commands@.service.d
            for unit in headroomd headroom-commands@; do
              printf '[Service]\\nReadWritePaths={paths}\\n' > $unit.service.d/disk.conf
            done; systemctl daemon-reload""", check=True)
        return self

    def leave(self):
        super().leave()
        self.vm.run(f"rm -rf {ROOT}/pods {ROOT}/logs {ROOT}/images")
        for disk in self.disks:
            disk.remove(self.vm)

    def paths(self, **more) -> dict:
        """headroom.disk"""
        return {"nodefs": self.nodefs, "volumes": f"{self.nodefs}/pods/{{uid}}/{{volume}}",
                "logs": f"{self.nodefs}/logs/{{name}}/{{container}}", **more}

    def volume(self, pod, name="data"):
        return f"{self.nodefs}/pods/{pod.uid}/{name}"

    def run_with_volume(self, pod, fill, *properties, size_limit=None, project=0):
        """A pod with an emptyDir that FILL, a script, is run in; PROJECT: its quota's."""
        empty_dir = {"sizeLimit": size_limit} if size_limit else {}
        pod.volumes = [{"name": "data", "emptyDir": empty_dir}]
        self.vm.run(f"mkdir -p {self.volume(pod)}", check=True)
        if project:
            self.vm.run(f"chattr -p {project} +P {self.volume(pod)}", check=True)
        return self.run_script(pod, f"cd {self.volume(pod)}; {fill}; exec sleep infinity", *properties)
