# SPDX-License-Identifier: Apache-2.0
"""Each alert fires on the fault that it is for, made here, and none on a node that is busy and healthy. A real Prometheus has our
rules; windows, waits and the scrape interval are seconds where they are minutes elsewhere, or the real ones with
HEADROOM_QUIET_MINUTES=60."""

import contextlib
import json
import os
import re
import time
from pathlib import Path

from forwarded import forwarded
from kube_node import Authority, KubePod
from machine import prometheus
from node import AUDIT, Node, Pod, kubelet_configuration
from test_api import ApiNode, grow
from test_prometheus import make_cgroups, remove_cgroups
from test_victims import FREEZE

KERNELS = ("6.12",)
MEMORY = "2G"
CPUS = 4
METRICS_PORT = 9750

ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "dashboards/prometheus").glob("*.yaml"))
ALERTS = set(re.findall(r"alert: (\w+)", "".join(rule.read_text() for rule in RULES)))
PROMETHEUS_PORT = 19092
WINDOW = "20s"
DROP_IN = "/run/systemd/system/headroomd.service.d/alerts.conf"
# What the emulated machine's host does is in its CPU time: over seconds this one means nothing there.
OF_THE_HOST = {"HeadroomCpuUsageHigh"}
seen_to_fire: set[str] = set()


def shorter(folder: Path) -> list[Path]:
    """The rules with windows and waits of seconds; what they compare is the same."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for rule in RULES:
        text = re.sub(r"\[\d+[mh](:\d+s)?\]", rf"[{WINDOW}\1]", rule.read_text())
        text = re.sub(r"offset \d+m", "offset 10s", text)
        text = re.sub(r"for: \d+m", "for: 2s", text).replace("timestamp_seconds > 300", "timestamp_seconds > 10")
        made.append(folder / rule.name)
        made[-1].write_text(text)
    return made


@contextlib.contextmanager
def watched(node, name: str, rules=None, every: str = "2s"):
    """A Prometheus that scrapes this node."""
    folder = ROOT / "build/vm/prometheus-alerts" / f"{name}-{time.time_ns()}"
    with forwarded(node.vm) as target:
        job = {"job_name": "headroom", "scrape_interval": every, "static_configs": [{"targets": [target]}]}
        with prometheus.Prometheus(folder, target, rules or shorter(folder), PROMETHEUS_PORT, [job]) as prom:
            yield prom


def firing(prom) -> set[str]:
    return {each["metric"]["alertname"] for each in prom.query('ALERTS{alertstate="firing"}')}


def wait_for_alerts(prom, *names: str, timeout: float = 60) -> None:
    """Until each has fired, at the same time or not."""
    missing, deadline = set(names), time.monotonic() + timeout
    while missing := missing - firing(prom):
        assert time.monotonic() < deadline, f"did not fire: {missing}; firing: {firing(prom)}"
        time.sleep(1)
    seen_to_fire.update(names)
    print(f"    fired: {', '.join(names)}")


def wait_for_quiet(prom, timeout: float = 90) -> None:
    """Each alert ends with its cause; none fires, and the node is scraped."""
    deadline = time.monotonic() + timeout
    while (left := firing(prom) - OF_THE_HOST) or prom.value("up") != 1:
        assert time.monotonic() < deadline, f"still firing: {left}"
        time.sleep(1)
    time.sleep(4)
    assert not firing(prom) - OF_THE_HOST, firing(prom)


def with_drop_in(node, text: str, config: str) -> None:
    """A daemon whose unit an operator has changed so."""
    node.stop()
    node.vm.put(f"[Service]\n{text}\n".encode(), DROP_IN)
    node.vm.run("systemctl daemon-reload", check=True)
    node.start(config)


def without_drop_in(node) -> None:
    node.stop()
    node.vm.run(f"rm -f {DROP_IN}; systemctl daemon-reload", check=True)


def test_of_a_node_that_is_only_observed(vm):
    """A pod takes all of the memory, and the kernel ends it."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi", mode="observe"))
        with watched(node, "observe") as prom:
            node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
            wait_for_quiet(prom)
            node.run_pod(Pod("hog"), "--hold 1M --rate 60M --until 4G", "OOMScoreAdjust=900")
            wait_for_alerts(prom, "HeadroomThresholdSoon", "HeadroomWouldHaveEvicted", "HeadroomNodePressure", "HeadroomKernelOOMKill", timeout=120)


def test_of_evictions_that_do_not_help(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        with watched(node, "evictions") as prom:
            # Files of a tmpfs outlive the pod that wrote them.
            vm.run("mkdir -p /mnt/shared && mount -t tmpfs -o size=2G tmpfs /mnt/shared", check=True)
            try:
                hog = node.run_script(Pod("tmpfs-hog"), "head -c 600M /dev/zero > /mnt/shared/file; exec sleep infinity")
                vm.wait_until(f"[ $(cat {hog.cgroup}/memory.current) -gt {599 << 20} ]")
                wait_for_quiet(prom)
                node.configure(kubelet_configuration(hard=f"{(node.memory_available() >> 20) + 100}Mi"))
                vm.run("systemctl reload headroomd.service", check=True)
                wait_for_alerts(prom, "HeadroomEvictionFutile", timeout=90)
            finally:
                node.stop()
                node.leave_pods()
                vm.run("umount /mnt/shared")
            # A write to a filesystem that is frozen ends for no signal.
            vm.run(FREEZE, check=True)
            try:
                node.start(kubelet_configuration(hard="300Mi"))
                stuck = node.run_script(Pod("stuck", priority=-10), "echo x > /mnt/frozen/file & exec /opt/headroom/bin/workload --hold 700M")
                vm.wait_until(f"[ $(cat {stuck.cgroup}/memory.current) -gt {699 << 20} ]")
                node.run_pod(Pod("hog"), f"--hold {node.holding_to_leave(200)}M")
                wait_for_alerts(prom, "HeadroomEvictionTimedOut", timeout=120)
            finally:
                vm.run("fsfreeze --unfreeze /mnt/frozen")
                node.stop()
                node.leave_pods()
                vm.run("umount /mnt/frozen; rm -f /run/frozen.img")
            # Its unit lets it write no cgroup and signal no other user's processes.
            with_drop_in(node, "ReadOnlyPaths=/sys/fs/cgroup\nCapabilityBoundingSet=~CAP_KILL", kubelet_configuration(hard="300Mi"))
            node.run_pod(Pod("foreign"), "--hold 1M --rate 100M --until 4G", "User=65534", "OOMScoreAdjust=900")
            wait_for_alerts(prom, "HeadroomEvictionFailed", timeout=120)
            node.leave_pods()
            without_drop_in(node)


def test_of_the_daemon_itself(vm):
    with Node(vm) as node:
        good = kubelet_configuration(hard="200Mi")
        with watched(node, "daemon") as prom:
            with_drop_in(node, "WatchdogSec=120", good)
            wait_for_quiet(prom)

            node.configure("headroom: {mode: sometimes}\n")
            vm.run("systemctl reload headroomd")
            wait_for_alerts(prom, "HeadroomReloadFailed")
            node.configure(good)
            vm.run("systemctl reload headroomd", check=True)
            wait_for_quiet(prom)

            halt = vm.spawn("/opt/headroom/bin/halt $(systemctl show -P MainPID headroomd.service) 40")
            wait_for_alerts(prom, "HeadroomReadingsStale", "HeadroomLoopStalled", timeout=60)
            vm.run(f"systemctl stop {halt}; true")
            wait_for_quiet(prom)

            # A thousand cgroups, each read twenty times a second.
            make_cgroups(vm, 1000)
            with_drop_in(node, "", kubelet_configuration(hard="200Mi", sweepPeriod="50ms", cpuBudget="50%"))
            wait_for_alerts(prom, "HeadroomCpuUsageHigh", timeout=60)
            remove_cgroups(vm)

            with_drop_in(node, "CapabilityBoundingSet=~CAP_BPF CAP_PERFMON CAP_SYS_ADMIN", good)
            wait_for_alerts(prom, "HeadroomBpfProgramNotLoaded")

            node.stop()
            wait_for_alerts(prom, "HeadroomDown", "HeadroomAbsent")
            without_drop_in(node)
            node.start(good)
            wait_for_quiet(prom)
            forget_the_target(prom)
            wait_for_alerts(prom, "HeadroomNodeGone", timeout=30)


def forget_the_target(prom) -> None:
    """Service discovery removes it: the Prometheus is reloaded."""
    file = prom.folder / "prometheus.yml"
    config = json.loads(file.read_text())
    config["scrape_configs"][0]["static_configs"] = [{"targets": []}]
    file.write_text(json.dumps(config))
    prom.process.send_signal(1)


def test_of_readings_that_cannot_be_taken(vm):
    """imagefs is on a mount whose server has gone: statvfs() does not return."""
    vm.run("modprobe fuse; mkdir -p /mnt/hung", check=True)
    with Node(vm) as node:
        with watched(node, "readings") as prom:
            node.start(kubelet_configuration(hard="200Mi", disk={"imagefs": "/mnt/hung"}))
            wait_for_quiet(prom)
            vm.spawn("exec /opt/headroom/bin/hang /mnt/hung", unit="headroom-test-hang.service")
            vm.wait_until("grep -q ' /mnt/hung fuse ' /proc/mounts")
            try:
                wait_for_alerts(prom, "HeadroomReadingsMissing", timeout=90)
            finally:
                vm.run("systemctl kill -s KILL headroom-test-hang.service; umount -l /mnt/hung; true")


def test_of_a_disk_without_room_for_records(vm):
    """The minute before an eviction is lost; the record of the eviction is written when there is room."""
    folder = Path(AUDIT).parent
    with Node(vm) as node:
        vm.run(f"mkdir -p {folder} && mount -t tmpfs -o size=64k tmpfs {folder} && ! head -c 1M /dev/zero > {folder}/full", check=True)
        try:
            node.start(kubelet_configuration(hard="300Mi"))
            with watched(node, "disk") as prom:
                wait_for_quiet(prom)
                node.run_pod(Pod("hog"), "--hold 1M --rate 100M --until 4G")
                wait_for_alerts(prom, "HeadroomDropped", timeout=120)
                assert not node.evictions()
                vm.run(f"rm {folder}/full", check=True)
                record, = node.wait_for_evictions(1)
                assert record["pod"]["name"] == "hog", record
        finally:
            node.stop()
            vm.run(f"umount {folder}; true")


def test_of_reserves_and_cpus(vm):
    with Node(vm) as node:
        config = json.loads(kubelet_configuration(hard="200Mi", cpus={"mode": "enforce"}))
        node.start(json.dumps(config | {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}))
        with watched(node, "reserves") as prom:
            vm.run("systemctl start reserved.slice; systemctl set-property --runtime reserved.slice MemoryMin=16M", check=True)
            vm.spawn("exec /opt/headroom/bin/workload --hold 64M", unit="headroom-test-reserved.service", slice="reserved.slice")
            try:
                wait_for_alerts(prom, "HeadroomReserveOveruse")
            finally:
                vm.run("systemctl stop headroom-test-reserved.service reserved.slice; systemctl revert reserved.slice; true")
            node.run_script(Pod("wide", "burstable", {"cpu": "2500m"}), "exec sleep 600")
            wait_for_quiet(prom)
            try:
                vm.run("echo 0 > /sys/devices/system/cpu/cpu3/online; echo 0 > /sys/devices/system/cpu/cpu2/online", check=True)
                wait_for_alerts(prom, "HeadroomSharedPoolShort")
            finally:
                vm.run("echo 1 > /sys/devices/system/cpu/cpu2/online; echo 1 > /sys/devices/system/cpu/cpu3/online")
            wait_for_quiet(prom)


def test_of_the_kubelet_and_the_api_server(vm):
    with ApiNode(vm) as node:
        hog = KubePod("hog")
        node.start_kubelet(Authority("first"))
        node.start_api([hog])
        node.start(node.configuration(hard="300Mi"))
        node.start_kube()
        with watched(node, "kube") as prom:
            wait_for_quiet(prom)
            vm.run(f"echo 'not a record' >> {AUDIT}", check=True)
            wait_for_alerts(prom, "HeadroomKubeAuditLinesSkipped")

            # The API server is gone, and what is left to say cannot be written down either.
            vm.run("systemctl stop api-double", check=True)
            vm.run("mount -o remount,bind,ro /var/lib/private/headroom-kube 2>/dev/null || "
                   "{ mount --bind /var/lib/private/headroom-kube /var/lib/private/headroom-kube && "
                   "nsenter -t $(systemctl show -P MainPID headroom-kube) -m mount -o remount,bind,ro /var/lib/private/headroom-kube; }", check=True)
            grow(node, hog, "250M")
            vm.wait_until(f"grep -q '\"hog\"' {AUDIT}", timeout=120)
            wait_for_alerts(prom, "HeadroomKubeApiUnreachable", "HeadroomKubeReportsPending", "HeadroomKubeStateWriteFailed", timeout=90)

            vm.run("systemctl kill -s KILL kubelet-double", check=True)
            wait_for_alerts(prom, "HeadroomKubeKubeletUnreachable", "HeadroomKubePodsStale", timeout=60)
            vm.run("umount /var/lib/private/headroom-kube; true")


def test_none_on_a_healthy_busy_node(vm):
    """Pods come and go, one is throttled, one meets its own limit: nothing of the node's own is wrong."""
    minutes = float(os.environ.get("HEADROOM_QUIET_MINUTES", "0"))
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="200Mi"))
        make_cgroups(vm, 300)
        try:
            # A scrape every two seconds is half of what the daemon costs here.
            with watched(node, "quiet", RULES if minutes else None, "15s" if minutes else "2s") as prom:
                busy(node)
                wait_for_quiet(prom)
                began = time.time()
                while time.time() < began + (60 * minutes or 90):
                    visitor = node.run_pod(Pod("visitor"), "--hold 40M")
                    time.sleep(10)
                    node.forget(visitor)
                ever = prom.get("query_range", query='ALERTS{alertstate="firing"}', start=began, end=time.time(), step="5s")["result"]
                ever = [each["metric"] for each in ever if minutes or each["metric"]["alertname"] not in OF_THE_HOST]
                assert not ever, ever
                assert not node.evictions() and node.kernel_oom_kills() >= 1, "the pod at its limit had no OOM kill"
                print(f"    {(time.time() - began) / 60:.1f} minutes without an alert")
        finally:
            remove_cgroups(vm)


def busy(node) -> None:
    node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 200M")
    node.run_script(Pod("spinning", "burstable", {"cpu": "50m"}), "while :; do :; done", "CPUQuota=10%")
    node.run_pod(Pod("bursting"), "--hold 1M --after 5 --until 90M", "MemoryMax=30M", "MemorySwapMax=0")
    node.run_script(Pod("writer"), "while :; do dd if=/dev/zero of=/var/tmp/written bs=1M count=50 2>/dev/null; sleep 1; done", "MemoryMax=64M")


def test_all_have_been_seen(vm):
    assert ALERTS == seen_to_fire, f"no fault was made for {sorted(ALERTS - seen_to_fire)}"
