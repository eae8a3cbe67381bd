# SPDX-License-Identifier: Apache-2.0
"""A kill, and the API server knows of it: at once, through an outage, and without headroomd noticing any of it."""

import json
import re
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from kube_node import Authority, KubeNode, KubePod

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kube"))

from apiserver_double import make_certificate  # noqa: E402

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = 9750

API, PORT = "/run/api-double", 6443


class ApiNode(KubeNode):
    """With an API server in the guest as well."""

    def start_api(self, pods) -> None:
        self.vm.run(f"mkdir -p {API}", check=True)
        with tempfile.TemporaryDirectory() as place:
            make_certificate(Path(place))
            for name in ("apiserver.pem", "apiserver.crt"):
                self.vm.put(Path(place, name), f"{API}/{name}")
        cluster = {"pods": [{"namespace": pod.namespace, "name": pod.name, "uid": pod.uid} for pod in pods], "nodes": [self.name]}
        self.vm.put(json.dumps(cluster).encode(), f"{API}/cluster.json")
        self.vm.spawn(f"exec /opt/headroom/bin/python3 /opt/headroom/bin/apiserver_double.py --port {PORT} --folder {API}",
                      unit="api-double.service")
        self.vm.wait_until(f"test -e {API}/state.json && test -e {API}/token")

    def configuration(self, after="delete", **settings) -> str:
        config = json.loads(super().configuration(**settings))
        config["headroom"]["kubernetes"]["api"] = {
            "url": f"https://127.0.0.1:{PORT}", "caFile": f"{API}/apiserver.crt", "tokenFile": f"{API}/token",
            "timeout": "2s", "afterEviction": after, "conditions": True, "taints": True}
        return json.dumps(config)

    def api(self) -> dict:
        return json.loads(self.vm.run(f"cat {API}/state.json", check=True).out)

    def pods_with(self, what: str) -> list[str]:
        """The uids of the pods to which that happened in the API."""
        return [uid for _, done, uid in self.api()["effects"] if done == what]

    def report_status(self) -> dict:
        return (self.status().get("kubernetes") or {}).get("api") or {}

    def leave(self) -> None:
        self.vm.run(f"systemctl stop headroom-kube api-double; systemctl reset-failed api-double; rm -rf {API} /run/go-*; true", timeout=60)
        super().leave()


def grow(node, pod, rate: str) -> KubePod:
    """It fills memory once headroomd knows who it is: one that is killed before has no name to be reported by."""
    go = f"/run/go-{pod.name}"
    node.run_script(pod, f"until test -e {go}; do sleep 0.2; done; exec /opt/headroom/bin/workload --hold 1M --rate {rate} --until 4G")
    node.wait_for(node.known, lambda pods: f"shop/{pod.name}" in pods, timeout=90)
    node.vm.run(f"touch {go}", check=True)
    return pod


def seconds_of(time_of_record: str) -> float:
    return datetime.fromisoformat(time_of_record.replace("Z", "+00:00")).timestamp()


def test_a_killed_pod_is_reported_to_the_api_server(vm):
    with ApiNode(vm) as node:
        web, hog = KubePod("web", "burstable", {"memory": "200Mi"}), KubePod("hog")
        node.start_kubelet(Authority("first"))
        node.start_api([web, hog])
        node.start(node.configuration(hard="300Mi"))
        node.start_kube()
        node.run_pod(web, "--hold 60M")
        grow(node, hog, "250M")
        record, = node.wait_for_evictions(1, timeout=120)
        assert record["pod"]["name"] == "hog", record
        node.wait_for(lambda: node.pods_with("event"), lambda uids: uids == [hog.uid])
        state = node.api()
        effects = [(what, uid) for _, what, uid in state["effects"] if uid == hog.uid]
        assert effects == [("status", hog.uid), ("gone", hog.uid), ("event", hog.uid)], state["effects"]
        assert not state["complaints"], state["complaints"]
        event, = state["events"]
        assert event["message"] == record["message"] and event["reason"] == "Evicted", event
        assert event["source"] == {"component": "headroom", "host": node.name}, event
        assert [pod["metadata"]["name"] for pod in state["pods"]] == ["web"]

        # The node says so too, beside what a kubelet says of it.
        holds = {each["type"]: each["status"] for each in
                 node.wait_for(lambda: node.api()["nodes"][node.name]["status"]["conditions"],
                               lambda all_: any(each["status"] == "True" for each in all_))}
        assert holds["HeadroomMemoryPressure"] == "True" and holds["HeadroomDiskPressure"] == "False", holds
        node.wait_for(lambda: node.api()["nodes"][node.name]["spec"].get("taints"), lambda taints: taints and
                      [taint["key"] for taint in taints] == ["headroom.io/memory-pressure"])

        # And who asks headroomd.
        node.wait_for(node.report_status, lambda status: status.get("reported") == 1 and status["pending"] == 0)
        status = vm.run("headroomctl status", check=True).out
        assert f"API:      https://127.0.0.1:{PORT}  1 evictions reported" in status, status
        page = node.metrics()
        assert "headroom_kube_evictions_reported_total 1" in page and "headroom_kube_api_up 1" in page, page[-3000:]
        at = {what: state["began_at"] + when for when, what, uid in state["effects"] if uid == hog.uid}
        decided = seconds_of(record["time"])
        print(f"    decided → dead {record['latency']['signal_to_exit_ms']:.0f} ms; decided → deleted in the API "
              f"{(at['gone'] - decided) * 1000:.0f} ms, Event {(at['event'] - decided) * 1000:.0f} ms")


def pace(node) -> dict[str, float]:
    """Of headroomd: passes, and the seconds they took."""
    page = node.metrics()
    found = {name: float(re.search(rf"^headroom_sweep_duration_seconds_{name} (\S+)", page, re.M)[1]) for name in ("sum", "count")}
    found["hangs"] = float(re.search(r"^headroom_loop_stalls_total (\S+)", page, re.M)[1])
    found["at"] = float(node.vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)
    return found


def between(before, after) -> tuple[float, float]:
    """Passes a second, and the mean milliseconds of one."""
    passes = after["count"] - before["count"]
    return passes / (after["at"] - before["at"]), (after["sum"] - before["sum"]) / max(passes, 1) * 1000


def evict_another(node, number: int, seen: int) -> KubePod:
    hog = grow(node, KubePod(f"hog-{number}"), "400M")
    node.wait_for_evictions(seen + 1, timeout=120)
    return hog


def test_an_outage_of_twenty_seconds_loses_nothing_and_the_loop_does_not_notice(vm):
    with ApiNode(vm) as node:
        hogs = [KubePod(f"hog-{i}") for i in range(4)]
        node.start_kubelet(Authority("first"))
        node.start_api(hogs)
        node.start(node.configuration(hard="300Mi"))
        node.start_kube()
        node.run_pod(KubePod("web", "burstable", {"memory": "200Mi"}), "--hold 60M")
        node.wait_for(node.known, lambda pods: "shop/web" in pods)
        calm = pace(node)
        evict_another(node, 0, 0)
        node.wait_for(lambda: node.pods_with("event"), lambda uids: uids == [hogs[0].uid])
        reachable = pace(node)

        vm.run(f"touch {API}/down", check=True)
        went = time.monotonic()
        began = pace(node)
        for number in (1, 2, 3):
            evict_another(node, number, number)
            if number == 2:
                vm.run("systemctl kill -s KILL headroom-kube", check=True)
        node.wait_for(node.report_status, lambda status: status.get("pending") == 3 and "error" in status)
        status = vm.run("headroomctl status", check=True).out
        assert "3 waiting since" in status, status
        time.sleep(max(0.0, 20 - (time.monotonic() - went)))
        ended = pace(node)
        assert node.pods_with("gone") == [hogs[0].uid]

        vm.run(f"rm {API}/down", check=True)
        back, uids = time.monotonic(), [hog.uid for hog in hogs]
        node.wait_for(lambda: node.pods_with("event"), lambda found: sorted(found) == sorted(uids), timeout=60)
        took = time.monotonic() - back
        state = node.api()
        assert not state["complaints"], state["complaints"]
        for what in ("status", "gone", "event"):
            assert sorted(node.pods_with(what)) == sorted(uids), f"{what}: each once"
        node.wait_for(node.report_status, lambda status: status["pending"] == 0 and "error" not in status)

        crossings = [record["latency"]["crossing_to_decision_ms"] for record in node.evictions()]
        without, within = between(calm, reachable), between(began, ended)
        assert ended["hangs"] == calm["hangs"], (calm, ended)
        assert within[1] < 3 * without[1] + 5, f"a pass took {without[1]:.2f} ms before, {within[1]:.2f} ms in the outage"
        assert all(ms < 250 for ms in crossings), crossings
        print(f"    down {back - went:.0f} s, three evictions in it and one kill -9: reported {took:.1f} s after; "
              f"passes/s and ms each: {without[0]:.1f} of {without[1]:.2f} before, {within[0]:.1f} of {within[1]:.2f} in the outage; "
              f"crossing → decision: {crossings[0]:.1f} ms before, {', '.join(f'{ms:.1f}' for ms in crossings[1:])} in it")
