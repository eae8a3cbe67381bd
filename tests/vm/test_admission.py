# SPDX-License-Identifier: Apache-2.0
"""Conditions as taints, admission, NoExecute and its timers, and who may edit taints: on a real node."""

import json

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = 9750
NODE_FILE = "/run/headroom/node.json"
PRESSURE = "node.kubernetes.io/memory-pressure"


def configuration(hard="100Mi", soft=None, **keys):
    config = json.loads(kubelet_configuration(hard=hard, soft=soft, grace="1h"))
    return json.dumps(config | keys)


def put_pod(vm, name, **resources):
    """A manifest that is not run; returns its path."""
    path = f"/tmp/{name}.yaml"
    spec = {"containers": [{"name": "main", "resources": {"requests": resources}}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    vm.put(json.dumps(manifest).encode(), path)
    return path


def taints(node):
    return [each["taint"] for each in json.loads(node.vm.run("headroomctl taint --json", check=True).out)["taints"]]


def read_status(node):
    return json.loads(node.vm.get(NODE_FILE))


def test_memory_pressure_is_a_taint_that_keeps_best_effort_away_and_clears(vm):
    with Node(vm) as node:
        idle, modest = put_pod(vm, "idle"), put_pod(vm, "modest", memory="1Mi")
        node.start(configuration(soft="700Mi", evictionPressureTransitionPeriod="5s"))
        assert taints(node) == []
        vm.run(f"headroomctl admit -f {idle}", check=True)
        hog = node.run_pod(Pod("hog", "burstable", {"memory": "1Mi"}), f"--hold {node.holding_to_leave(400)}M")
        vm.wait_until(f"grep -q {PRESSURE} {NODE_FILE}")
        assert taints(node) == [f"{PRESSURE}:NoSchedule"]
        refused = vm.run(f"headroomctl admit -f {idle}")
        assert refused.code == 1 and "The node had condition: [MemoryPressure]." in refused.out, refused.out
        vm.run(f"headroomctl admit -f {modest}", check=True)
        condition = read_status(node)["status"]["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("True", "KubeletHasInsufficientMemory"), condition
        assert 'headroom_node_condition{condition="MemoryPressure",status="true"} 1' in node.metrics()
        vm.stop(hog.unit)
        # It outlasts its cause by the transition period.
        assert taints(node) == [f"{PRESSURE}:NoSchedule"]
        vm.wait_until(f"! grep -q {PRESSURE} {NODE_FILE}", timeout=30)
        vm.run(f"headroomctl admit -f {idle}", check=True)


def test_no_execute_evicts_by_toleration_seconds_over_a_restart(vm):
    with Node(vm) as node:
        node.start(configuration())
        tolerating = {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}
        strict = node.run_pod(Pod("strict"), "--hold 8M")
        patient = node.run_pod(Pod("patient", tolerations=[tolerating | {"tolerationSeconds": 12}]), "--hold 8M")
        tolerant = node.run_pod(Pod("tolerant", tolerations=[tolerating]), "--hold 8M")
        vm.wait_until(f"[ $(grep -c '\"uid\": ' {NODE_FILE}) -eq 3 ]")
        vm.run("headroomctl taint dedicated=gpu:NoExecute", check=True)
        first, = node.wait_for_evictions(1)
        assert first["pod"]["name"] == "strict" and first["taint"] == "dedicated=gpu:NoExecute", first
        assert node.alive(patient) and node.alive(tolerant) and not node.alive(strict)
        leaving, = json.loads(vm.run("headroomctl taint --json", check=True).out)["taint_evictions"]
        assert leaving["name"] == "patient" and 0 < leaving["seconds"] <= 12, leaving
        vm.run("sleep 3; systemctl restart headroomd.service", check=True, timeout=60)
        assert taints(node) == ["dedicated=gpu:NoExecute"]
        second = node.wait_for_evictions(2)[1]
        assert second["pod"]["name"] == "patient", second
        # From the taint's first sight to the decision, across the restart: the original deadline.
        waited = second["latency"]["first_seen_to_decision_ms"]
        assert 12_000 <= waited < 13_500, second
        assert node.alive(tolerant)
        vm.run("headroomctl taint dedicated-", check=True)
        assert taints(node) == []
        again = vm.run("headroomctl taint dedicated-")
        assert again.code == 1 and 'taint "dedicated" not found' in again.out, again.out
        print(f"    tolerated for 12 s, sent away after {waited / 1000:.2f} s")


class DaemonSetPod(Pod):
    """Owned by a DaemonSet, whose pods tolerate what a node in trouble is tainted with."""

    def manifest(self) -> str:
        pod = json.loads(super().manifest())
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents",
                                               "uid": "1", "controller": True}]
        return json.dumps(pod)


def test_default_tolerations_are_added(vm):
    with Node(vm) as node:
        node.start(configuration(soft="700Mi", evictionPressureTransitionPeriod="5s"))
        agent = node.run_pod(DaemonSetPod("agent"), "--hold 8M")
        plain = node.run_pod(Pod("plain", pre_stop=["/bin/sh", "-c", "touch /run/said-goodbye"]), "--hold 8M")
        limited = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                   "tolerationSeconds": 5}
        patient = node.run_pod(Pod("patient", tolerations=[limited]), "--hold 8M")
        vm.wait_until(f"[ $(grep -c '\"uid\": ' {NODE_FILE}) -eq 3 ]")
        vm.run("headroomctl taint node.kubernetes.io/unreachable:NoExecute", check=True)
        records = node.wait_for_evictions(2)
        assert [record["pod"]["name"] for record in records] == ["plain", "patient"], records
        assert 5000 <= records[1]["latency"]["first_seen_to_decision_ms"] < 6500, records[1]
        assert vm.run("rm /run/said-goodbye").code == 0, "who is sent away runs its pre-stop commands"
        assert node.alive(agent) and not node.alive(plain) and not node.alive(patient)
        vm.run("headroomctl taint node.kubernetes.io/unreachable-", check=True)
        # Under pressure a DaemonSet's BestEffort pod is admitted and another is not.
        for pod in (DaemonSetPod("other-agent"), Pod("other")):
            vm.put(pod.manifest().encode(), f"/tmp/{pod.name}.yaml")
        node.run_pod(Pod("hog", "burstable", {"memory": "1Mi"}), f"--hold {node.holding_to_leave(600)}M")
        vm.wait_until(f"grep -q {PRESSURE} {NODE_FILE}", timeout=90)
        vm.run("headroomctl admit -f /tmp/other-agent.yaml", check=True)
        assert vm.run("headroomctl admit -f /tmp/other.yaml").code == 1


def test_only_root_edits_taints_and_everybody_may_ask(vm):
    with Node(vm) as node:
        idle = put_pod(vm, "idle")
        node.start(configuration())
        vm.wait_until(f"[ -s {NODE_FILE} ]")
        unprivileged = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        refused = vm.run(f"{unprivileged} headroomctl taint a:NoExecute")
        assert refused.code == 1 and "only root" in refused.out, refused.out
        assert taints(node) == []
        vm.run(f"{unprivileged} headroomctl taint && {unprivileged} headroomctl admit -f {idle} && {unprivileged} cat {NODE_FILE}",
               check=True)
        node.stop()
        gone = vm.run(f"headroomctl admit -f {idle}")
        assert gone.code == 3 and "not running" in gone.out, gone.out


def test_the_status_file_is_a_node_that_place_reads(vm):
    with Node(vm) as node:
        small, large = put_pod(vm, "small", cpu="100m"), put_pod(vm, "large", memory="64Gi")
        node.start(configuration(maxPods=7, kubeReserved={"memory": "256Mi"},
                                 registerWithTaints=[{"key": "maybe", "effect": "PreferNoSchedule"}]))
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi", "cpu": "500m"}), "--hold 8M")
        vm.wait_until(f"grep -q '\"cpu\": \"500m\"' {NODE_FILE}")
        status = read_status(node)
        assert status["kind"] == "Node" and status["status"]["allocatable"]["pods"] == "7", status
        assert status["spec"]["taints"] == [{"key": "maybe", "effect": "PreferNoSchedule"}], status
        assert status["headroom"]["requested"]["memory"] == "300Mi", status
        total = int(vm.run("awk '/^MemTotal/{print $2}' /proc/meminfo", check=True).out)
        assert status["status"]["capacity"]["memory"] == f"{total}Ki", status
        assert status["status"]["allocatable"]["memory"] == f"{total - (356 << 10)}Ki", "less 256Mi and 100Mi"
        place = vm.run(f"headroomctl place -f {small} {NODE_FILE}")
        assert place.code == 0 and f"the best node is {status['metadata']['name']}" in place.out, place.out
        place = vm.run(f"headroomctl place -f {large} {NODE_FILE}")
        assert place.code == 1 and "Insufficient memory" in place.out, place.out
        vm.put(b"kind: Pod\nspec: 7\n", "/tmp/bad.yaml")
        bad = vm.run("headroomctl place -f /tmp/bad.yaml /tmp/absent.json")
        assert bad.code == 2 and "/tmp/bad.yaml:1: missing apiVersion" in bad.out and "/tmp/absent.json" in bad.out, bad.out
