# SPDX-License-Identifier: Apache-2.0
"""headroomd on a real node: who dies, when, of what; and what refuses to start."""

import json

from node import AUDIT, Node, Pod, kubelet_configuration

CORE = True
MEMORY = "2G"
METRICS_PORT = 9750


def bystanders(node):
    """Three pods that must stay, and hold what they hold: Guaranteed, Burstable within its request, BestEffort but small."""
    pods = [
        node.run_pod(Pod("bank", "guaranteed", {"memory": "256Mi", "cpu": "100m"}, {"memory": "256Mi", "cpu": "100m"}),
                     "--hold 160M", "MemoryMax=256M"),
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 150M"),
        node.run_pod(Pod("cron", "besteffort"), "--hold 8M"),
    ]
    for pod, holding in zip(pods, (160, 150, 7)):
        settled(node, [pod], holding)
    return pods


def settled(node, pods, holding):
    """All pods are up and hold more than so many MiB."""
    for pod in pods:
        node.vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {holding << 20} ]")


def crossing_to_signal(record):
    """Milliseconds from the last sample above the threshold, so an upper bound, to the signal sent."""
    return record["latency"]["crossing_to_decision_ms"] + record["latency"]["decision_to_signal_ms"]


def test_hard_threshold_kills_the_hog_alone_and_at_once(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        others = bystanders(node)
        hog = node.run_pod(Pod("hog"), "--hold 1M --after 2 --until 4G")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "hog" and record["kind"] == "hard", record
        assert not node.alive(hog)
        assert all(node.alive(pod) for pod in others)
        assert node.kernel_oom_kills() == 0
        assert crossing_to_signal(record) < 100, record
        assert record["allocations"] == 0, record
        print(f"    last clear sample to SIGKILL: {crossing_to_signal(record):.1f} ms")


def test_soft_threshold_waits_its_grace_then_asks_politely(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="150Mi", soft="700Mi", grace="2s", max_pod_grace=5))
        others = bystanders(node)
        batch = node.run_pod(Pod("batch", "burstable", {"memory": "64Mi"}), f"--hold {node.holding_to_leave(400)}M")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "batch" and record["kind"] == "soft", record
        assert record["latency"]["first_seen_to_decision_ms"] >= 2000, record
        # It obeyed SIGTERM, so no SIGKILL was needed.
        assert record["instants_ns"]["terminated"] and not record["instants_ns"]["killed"], record
        assert all(node.alive(pod) for pod in others) and not node.alive(batch)


def test_priority_outranks_size(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="500Mi"))
        small = node.run_pod(Pod("low-priority", priority=-10), "--hold 20M")
        big = node.run_pod(Pod("high-priority", priority=1000), "--hold 600M")
        settled(node, [small], 10)
        settled(node, [big], 500)
        hog = node.run_pod(Pod("hog", "burstable", {"memory": "2Gi"}), "--hold 1M --until 900M --rate 400M")
        records = node.wait_for_evictions(2)
        assert [record["pod"]["name"] for record in records[:2]] == ["low-priority", "high-priority"], records
        assert node.alive(hog)


def test_observe_mode_tells_and_touches_nothing(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="600Mi", mode="observe"))
        hog = node.run_pod(Pod("hog"), f"--hold {node.holding_to_leave(400)}M")
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | grep -q '^headroom_would_evict_total{.*} 1'")
        assert node.alive(hog)
        assert node.memory_available() < 600 << 20, "the threshold really was crossed"


def test_metrics_carry_the_pods_the_signal_and_the_eviction(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        web = node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 150M")
        hog = node.run_pod(Pod("hog"), "--until 4G")
        node.wait_for_evictions(1)
        vm.run(f"systemctl stop {hog.slice}; sleep 1.2", check=True)
        page = node.metrics()
        working_set = [line for line in node.metrics("/metrics/cadvisor").splitlines()
                       if line.startswith("container_memory_working_set_bytes{") and 'pod="web"' in line]
        held = max(float(line.rsplit(" ", 1)[1]) for line in working_set)
        current = int(vm.run(f"cat {web.cgroup}/memory.current", check=True).out)
        assert abs(held - current) < 32 << 20, (held, current)
        assert 'kubelet_evictions{eviction_signal="memory.available"} 1' in page
        available = float(next(line for line in page.splitlines()
                               if line.startswith('headroom_signal_available_bytes{signal="memory.available"}')).split()[-1])
        assert abs(available - node.memory_available()) < 64 << 20
        assert 'pod="hog"' not in page, "no series for the dead"


BROKEN = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHrad:
  memory.available: 100Mi
evictionHard:
  memory.available: 100Megs
evictionSoft:
  memory.available: 300Mi
headroom:
  podManifests: /tmp/bad-manifests
  hardGrace: soon
"""


def test_bad_configuration_says_everything_at_once_and_starts_nothing(vm):
    vm.put(BROKEN.encode(), "/tmp/bad.yaml")
    vm.put(b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", "/tmp/bad-manifests/deployment.yaml")
    try:
        for command in ("headroomd --config /tmp/bad.yaml --check-config", "headroomd --config /tmp/bad.yaml"):
            result = vm.run(command, timeout=20)
            assert result.code == 2, (command, result.code, result.out)
            for line, word in ((3, "evictionHrad"), (6, "100Megs"), (8, "grace"), (11, "hardGrace")):
                assert any(f"bad.yaml:{line}" in text and word in text for text in result.out.splitlines()), \
                    (line, word, result.out)
            assert "deployment.yaml:2" in result.out, result.out
        assert vm.run("pgrep headroomd").code == 1
    finally:
        vm.run("rm -rf /tmp/bad.yaml /tmp/bad-manifests")


def test_degraded_starts_say_what_still_works(vm):
    """Not root, no BPF, no D-Bus: one clear line each."""
    start = "timeout 4 {} /opt/headroom/bin/headroomd --config /tmp/ok.yaml --listen ''"
    vm.put(kubelet_configuration(hard="100Mi", mode="observe", stateDirectory="/tmp/hr", auditLog="/tmp/hr/a").encode(),
           "/tmp/ok.yaml")
    cases = {
        "root": start.format("setpriv --reuid=65534 --regid=65534 --clear-groups env"),
        "BPF": start.format("setpriv --bounding-set=-bpf,-sys_admin,-perfmon --inh-caps=-bpf,-sys_admin,-perfmon env"),
        "D-Bus": start.format("env DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere"),
    }
    try:
        for word, command in cases.items():
            vm.run("rm -rf /tmp/hr")  # another user's directory of manifests would be refused
            out = vm.run(command, timeout=30).out
            assert sum(word in line for line in out.splitlines()) == 1, (word, out)
    finally:
        vm.run("rm -rf /tmp/ok.yaml /tmp/hr")


def test_enforce_needs_root(vm):
    vm.put(kubelet_configuration(hard="100Mi").encode(), "/tmp/ok.yaml")
    result = vm.run("setpriv --reuid=65534 --regid=65534 --clear-groups headroomd --config /tmp/ok.yaml", timeout=20)
    assert result.code == 3 and len(result.out.splitlines()) == 1 and "root" in result.out, result.out
    vm.run("rm -f /tmp/ok.yaml")


def test_audit_line_is_complete(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 100M")
        node.run_pod(Pod("hog"), "--until 4G")
        record, = node.wait_for_evictions(1)
        fates = {entry["name"]: entry["selection"] for entry in record["ranking"]}
        assert fates == {"hog": "chosen", "web": "outranked"}, json.dumps(record, indent=1)
        assert record["memory_returned"] > 500 << 20, record
        assert record["message"].startswith("The node was low on resource: memory. "), record
        assert vm.run(f"stat -c %a {AUDIT}", check=True).out.strip() in ("600", "640"), "not for everyone's eyes"
