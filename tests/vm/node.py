# SPDX-License-Identifier: Apache-2.0
"""A node in the lab: headroomd under its own unit, and pods that are real transient units of systemd.

A pod is what a kubelet with the systemd driver makes: a slice kubepods[-tier]-pod<uid>.slice with a unit in it, plus
its v1 manifest in headroomd's directory.
"""

import json
import shlex
import uuid
from dataclasses import dataclass, field

ETC = "/etc/headroom"
AUDIT = "/var/log/headroom/evictions.jsonl"
PORT = 9750

# In the guest: returns once the file has so many lines. It starts no process for each look, so it takes next to no CPU time.
WAIT_FOR_LINES = """
import sys, time
def lines():
    try:
        with open(sys.argv[1]) as file:
            return file.read().count("\\n")
    except FileNotFoundError:
        return 0
while lines() < int(sys.argv[2]):
    time.sleep(0.02)
"""


def kubelet_configuration(hard, soft=None, grace="3s", max_pod_grace=10, mode="enforce", **headroom):
    """A KubeletConfiguration with memory thresholds and a headroom section."""
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
              "enforceNodeAllocatable": ["none"], "evictionHard": {"memory.available": hard},
              "evictionMaxPodGracePeriod": max_pod_grace, "headroom": {"mode": mode, **headroom}}
    if soft:
        config |= {"evictionSoft": {"memory.available": soft}, "evictionSoftGracePeriod": {"memory.available": grace}}
    return json.dumps(config, indent=1)


@dataclass
class Pod:
    name: str
    tier: str = "besteffort"  # guaranteed, burstable or besteffort
    requests: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)
    priority: int = 0
    grace: int = 30
    uid: str = ""
    volumes: list = field(default_factory=list)
    annotations: dict = field(default_factory=dict)
    pre_stop: list = field(default_factory=list)
    tolerations: list = field(default_factory=list)

    def __post_init__(self):
        self.uid = self.uid or str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))

    @property
    def slice(self) -> str:
        tier = "" if self.tier == "guaranteed" else f"-{self.tier}"
        return f"kubepods{tier}-pod{self.uid.replace('-', '_')}.slice"

    @property
    def cgroup(self) -> str:
        tier = "" if self.tier == "guaranteed" else f"/kubepods-{self.tier}.slice"
        return f"/sys/fs/cgroup/kubepods.slice{tier}/{self.slice}"

    @property
    def unit(self) -> str:
        return f"headroom-test-{self.name}.service"

    def manifest(self) -> str:
        resources = {key: value for key, value in (("requests", self.requests), ("limits", self.limits)) if value}
        container = {"name": "main", "image": "workload", "resources": resources}
        if self.pre_stop:
            container["lifecycle"] = {"preStop": {"exec": {"command": self.pre_stop}}}
        return json.dumps({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "default", "uid": self.uid, "annotations": self.annotations},
            "spec": {"priority": self.priority, "tolerations": self.tolerations,
                     "terminationGracePeriodSeconds": self.grace, "volumes": self.volumes,
                     "containers": [container]}}, indent=1)


class Node:
    """headroomd installed in a lab VM; leave() puts everything back.

    replayed: what the daemon saw and decided is recorded, and decided once more at the end: the same, or the test fails.
    """

    def __init__(self, vm, replayed: bool = False):
        self.vm, self.replayed = vm, replayed
        self.recorders: list[str] = []
        self.pods: list[Pod] = []
        vm.run(f"""mkdir -p {ETC}/manifests
            cp /opt/headroom/systemd/headroomd.service /opt/headroom/systemd/headroom.slice \
               /opt/headroom/systemd/headroom-commands* /run/systemd/system/
            sed -i s,/usr/libexec/,/opt/headroom/bin/, /run/systemd/system/headroom-commands@.service
            mkdir -p /run/systemd/system/headroomd.service.d
            printf '[Service]\\nExecStart=\\nExecStart=/opt/headroom/bin/headroomd --config {ETC}/headroom.yaml\\n' \
                > /run/systemd/system/headroomd.service.d/lab.conf
            cp /opt/headroom/systemd/io.headroom.Headroom1.conf /etc/dbus-1/system.d/
            busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig
            systemctl daemon-reload""", check=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                for again in self.decide_again():
                    assert again.code == 0, f"decided otherwise when replayed:\n{again.out}"
        finally:
            self.leave()
            self.vm.run("rm -f /var/tmp/recorder-*.rec")

    def configure(self, text: str) -> None:
        self.vm.put(text.encode(), f"{ETC}/headroom.yaml")

    def start(self, config: str) -> None:
        """Starts headroomd; systemctl returns when it says READY=1."""
        self.configure(config)
        self.vm.run("systemctl start headroomd.service || { journalctl -u headroomd -n 30 -o cat; exit 1; }", check=True)
        if self.replayed:
            self.record()

    def record(self) -> None:
        name = f"recorder-{len(self.recorders)}"
        self.recorders.append(name)
        self.vm.spawn(f"exec /opt/headroom/bin/headroomctl record --for 20m -o /var/tmp/{name}.rec", unit=name)
        self.vm.wait_until(f"[ -s /var/tmp/{name}.rec ]")

    def decide_again(self) -> list:
        """Ends the recordings and decides once more: what headroomctl replay said of each."""
        said = []
        for name in self.recorders:
            self.vm.run(f"systemctl kill -s INT {name}; while systemctl is-active -q {name}; do sleep 0.05; done", check=True)
            said.append(self.vm.run(f"headroomctl replay --expect-same /var/tmp/{name}.rec; code=$?; rm -f /var/tmp/{name}.rec; exit $code", timeout=120))
        self.recorders.clear()
        return said

    def stop(self) -> None:
        self.vm.run("systemctl stop headroomd.service; systemctl reset-failed headroomd.service; true", timeout=60)

    def run_pod(self, pod: Pod, workload: str, *properties: str) -> Pod:
        return self.run_script(pod, f"exec /opt/headroom/bin/workload {workload}", *properties)

    def run_script(self, pod: Pod, script: str, *properties: str) -> Pod:
        """The manifest first, then the unit in the pod's slice: as a pod comes to life."""
        self.vm.put(pod.manifest().encode(), f"{ETC}/manifests/{pod.name}.yaml")
        self.vm.spawn(script, unit=pod.unit, slice=pod.slice, properties=properties)
        self.pods.append(pod)
        return pod

    def alive(self, pod: Pod) -> bool:
        return self.vm.run(f"systemctl is-active --quiet {pod.unit}").code == 0

    def forget(self, pod: Pod) -> None:
        """Its unit, its slice and its manifest go, as when a controller takes a dead pod away."""
        self.vm.run(f"systemctl stop {pod.unit} {pod.slice}; systemctl reset-failed {pod.unit}; "
                    f"rm -f {ETC}/manifests/{pod.name}.yaml; true", timeout=60)
        self.pods.remove(pod)

    def status(self) -> dict:
        return json.loads(self.vm.run("headroomctl status --json", check=True).out)

    def metrics(self, path: str = "/metrics") -> str:
        return self.vm.run(f"curl -sS --max-time 10 http://127.0.0.1:{PORT}{path}", check=True).out

    def metric(self, start: str) -> float:
        """The sum of the series whose text begins so."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.metrics().splitlines() if line.startswith(start))

    def evictions(self) -> list[dict]:
        text = self.vm.run(f"cat {AUDIT} 2>/dev/null || true").out
        return [json.loads(line) for line in text.splitlines()]

    def wait_for_evictions(self, count: int, timeout: float = 60) -> list[dict]:
        self.vm.wait_until(f"[ $(cat {AUDIT} 2>/dev/null | wc -l) -ge {count} ]", timeout=timeout)
        return self.evictions()

    def measure_evictions(self, count: int, timeout: float = 60) -> list[dict]:
        """As wait_for_evictions(), where what the wait itself takes would count."""
        self.vm.run(f"timeout {timeout} /opt/headroom/bin/python3 -c '{WAIT_FOR_LINES}' {AUDIT} {count}", timeout=timeout + 60, check=True)
        return self.evictions()

    def evict_filler(self, name: str, flags: str = "") -> dict:
        """A pod takes memory as fast as it comes until one is evicted: the record of that, once the pod's process is gone."""
        known = len(self.evictions())
        pod = self.run_pod(Pod(name), f"--hold 1M --until 16G {flags}".strip())
        record = self.measure_evictions(known + 1)[-1]
        self.vm.wait_until(f"! systemctl is-active --quiet {pod.unit}", timeout=30)
        self.forget(pod)
        return record

    def journal(self) -> str:
        return self.vm.run("journalctl -b -u headroomd -o short-precise --no-hostname").out

    def kernel_oom_kills(self) -> int:
        return int(self.vm.run("awk '/^oom_kill /{print $2}' /proc/vmstat", check=True).out)

    def memory_available(self) -> int:
        """memory.available in bytes as the kubelet computes it, read without any of our code. mawk has a %d of 32 bits."""
        return int(self.vm.run("""
            total=$(awk '/^MemTotal:/{print $2*1024}' /proc/meminfo)
            awk -v total=$total '/^anon /{a=$2} /^file /{f=$2} /^inactive_file /{i=$2} END{printf "%.0f", total-(a+f-i)}' \
                /sys/fs/cgroup/memory.stat""", check=True).out)

    def holding_to_leave(self, mebibytes: int) -> int:
        """How many MiB one more pod must hold for so much to stay available."""
        return (self.memory_available() >> 20) - mebibytes

    def leave(self) -> None:
        self.stop()
        self.leave_pods()
        self.vm.run(f"rm -rf {ETC} {AUDIT} /run/headroom /run/systemd/system/headroomd.service* "
                    "/run/systemd/system/headroom-commands* /run/systemd/system/headroom.slice; systemctl daemon-reload")

    def leave_pods(self) -> None:
        units = shlex.join(pod.unit for pod in self.pods)
        if units:
            self.vm.run(f"systemctl kill -s KILL {units}; systemctl stop {units}; systemctl reset-failed {units}; true",
                        timeout=60)
            slices = shlex.join(pod.slice for pod in self.pods)
            self.vm.run(f"systemctl stop {slices}; true", timeout=60)
        self.pods.clear()


def unreclaimable(stat: str) -> int:
    """Bytes of a memory.stat that a limit has to leave room for: file pages can go, anonymous, locked and the kernel's own cannot."""
    values = {name: int(value) for name, value in (line.split() for line in stat.splitlines())}
    return max(values["anon"], values["unevictable"]) + values["kernel"] - values["slab_reclaimable"]


def small_bystanders(node: Node) -> list[Pod]:
    """Two within their requests, holding what they hold."""
    bank = Pod("bank", "guaranteed", {"memory": "64Mi", "cpu": "100m"}, {"memory": "64Mi", "cpu": "100m"})
    pods = [node.run_pod(bank, "--hold 40M", "MemoryMax=64M"),
            node.run_pod(Pod("web", "burstable", {"memory": "100Mi"}), "--hold 60M")]
    for pod, holding in zip(pods, (40, 60)):
        node.vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {holding << 20} ]")
    return pods
