# SPDX-License-Identifier: Apache-2.0
"""headroom-kube beside a kubelet: its pods and configuration are known, whatever it does."""

import json
import re

from crowd import Daemon, Spent
from kube_node import FIXTURES, KUBELET, RUN, Authority, KubeNode, KubePod

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = 9750


def test_a_kubelets_pods_are_known_and_judged_by_what_it_says(vm):
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration(hard="300Mi", compatibilityMetrics=True))  # before headroom-kube has written anything
        node.start_kube()
        web = node.run_pod(KubePod("web", "burstable", {"memory": "200Mi"}, priority=1000), "--hold 60M")
        control = node.run_pod(KubePod("control", annotations={"kubernetes.io/config.source": "file"}), "--hold 8M")
        hog = node.run_pod(KubePod("hog", "burstable", {"memory": "16Mi"}), "--hold 100M")
        pods = node.wait_for(node.known, lambda pods: {"shop/web", "shop/control", "shop/hog"} <= set(pods))
        assert pods["shop/web"]["priority"] == 1000 and pods["shop/control"]["state"] == "critical", pods
        page = node.metrics()
        series = re.search(r'^container_memory_working_set_bytes\{([^}]*name="' + web.id + r'"[^}]*)\}', page, re.M)[1]
        for label in ('container="main"', 'image="workload:1"', 'namespace="shop"', 'pod="web"'):
            assert label in series, series
        assert "headroom_kube_kubelet_up 1" in page and "headroom_kube_pods 3" in page, page[-2000:]
        status = vm.run("headroomctl status", check=True).out
        assert "kubelet:  https://127.0.0.1:10250  3 pods" in status, status
        checked = vm.run("headroomctl check", timeout=240).out
        assert re.search(r"kubelet's pods +ok", checked), checked

        # Over its request, and the node is short of memory.
        node.run_pod(KubePod("filler", "burstable", {"memory": "1Gi"}, priority=1000),
                     f"--hold {node.holding_to_leave(200)}M")
        record, = node.wait_for_evictions(1)
        assert (record["pod"]["namespace"], record["pod"]["name"]) == ("shop", "hog"), record
        assert node.alive(web) and node.alive(control) and not node.alive(hog)

        node.gone(hog)
        node.wait_for(node.known, lambda pods: "shop/hog" not in pods and "shop/web" in pods)
        vm.wait_until(f"! test -e {RUN}/pods/{hog.uid}.json")
        ended = [pod | ({"status": {"phase": "Failed"}} if pod["metadata"]["name"] == "web" else {}) for pod in node.entries]
        node.write_pods(ended)
        vm.wait_until(f"! test -e {RUN}/pods/{web.uid}.json")


def test_whatever_the_kubelet_does_the_last_that_is_known_holds(vm):
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration(kubelet={"timeout": "2s"}))
        node.start_kube()
        node.run_pod(KubePod("web", "burstable", {"memory": "64Mi"}), "--hold 8M")
        node.wait_for(node.known, lambda pods: "shop/web" in pods)
        for mode, said in (("401", "tokenFile"), ("403", "nodes/pods"), ("500", "500"), ("half", "GET"), ("reset", "GET"),
                           ("garbage", "not JSON"), ("slow", "timed out")):
            node.do(mode)
            bad = node.wait_for(node.kube_status, lambda status: not status.get("lastPollSucceeded") and said in status.get("error", ""))
            assert "shop/web" in node.known(), (mode, bad)
            assert "headroom_kube_kubelet_up 0" in node.metrics()
            node.do("ok")
            node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        # No kubelet at all; and headroom-kube, then headroomd, restarted meanwhile.
        vm.stop("kubelet-double.service")
        node.wait_for(node.kube_status, lambda status: not status.get("lastPollSucceeded"))
        vm.run("systemctl restart headroom-kube && systemctl restart headroomd", check=True, timeout=240)
        assert "shop/web" in node.wait_for(node.known, lambda pods: pods)
        # Stopped and gone, what it knew stays.
        vm.run("systemctl stop headroom-kube", check=True)
        assert vm.run(f"ls {RUN}/pods/", check=True).out.strip().endswith(".json")
        assert "shop/web" in node.known()
        # A kubelet that has just come back knows no pod yet: what it said of a pod that runs is remembered.
        node.entries = []
        node.start_kubelet(Authority("again"))
        node.start_kube()
        vm.wait_until(f"test -z \"$(ls {RUN}/pods/)\"")
        vm.run("sleep 1")
        assert node.known()["shop/web"]["priority"] == 0, node.known()


def test_tokens_and_authorities_are_rotated_under_it(vm):
    with KubeNode(vm) as node:
        first, second = Authority("first"), Authority("second")
        node.start_kubelet(first)
        node.start(node.configuration())
        node.start_kube()
        pid = vm.run("systemctl show -P MainPID headroom-kube", check=True).out
        node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        vm.put(b"second", f"{KUBELET}/token")
        node.wait_for(node.kube_status, lambda status: "401" in status.get("error", ""))
        node.give_token("second")
        node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        node.serve(second)
        node.run_kubelet()
        node.wait_for(node.kube_status, lambda status: "certificate" in status.get("error", ""))
        node.trust(second)
        node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        assert pid == vm.run("systemctl show -P MainPID headroom-kube", check=True).out, "no restart was needed"
        # A certificate of the right authority for another name is another's.
        node.name, name = "elsewhere", node.name
        node.serve(second)
        node.name = name
        node.run_kubelet()
        node.wait_for(node.kube_status, lambda status: name in status.get("error", ""))


def test_thresholds_need_not_be_said_twice(vm):
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        config = json.loads(node.configuration(kubelet={"configz": True}))
        config["evictionHard"] = {"nodefs.available": "3%"}
        node.start(json.dumps(config))
        limits = {each["limit"] for each in node.status()["thresholds"] if each["signal"] == "memory.available"}
        assert 350 << 20 not in limits, "nothing was said yet"
        node.start_kube()

        def in_force():
            return vm.run("headroomctl config", check=True).out

        settings = node.wait_for(in_force, lambda text: 'memory.available: "350Mi"' in text)
        assert re.search(rf'memory.available: "350Mi" +# {RUN}/kubelet.yaml:\d+', settings), settings
        assert re.search(r'nodefs.available: "3%" +# /etc/headroom/headroom.yaml:\d+', settings), "ours wins"
        assert re.search(r'mode: "observe" +# beside a kubelet', settings), settings
        # Another kubelet, restarted with another configuration.
        answer = json.loads((FIXTURES / "configz.json").read_text())
        answer["kubeletconfig"]["evictionHard"]["memory.available"] = "400Mi"
        vm.put(json.dumps(answer).encode(), f"{KUBELET}/configz.json")
        vm.run("systemctl reload headroom-kube", check=True)
        node.wait_for(in_force, lambda text: 'memory.available: "400Mi"' in text)
        # What two would write is refused, and what is in force stays.
        config["headroom"]["slices"] = {"mode": "enforce"}
        node.configure(json.dumps(config))
        vm.run("systemctl reload headroomd", check=True)
        vm.wait_until("journalctl -b -u headroomd -o cat | grep -q 'a kubelet keeps the slices here'")
        assert 'memory.available: "400Mi"' in in_force()


def test_five_hundred_pods_are_written_once(vm):
    """What a poll costs is printed, not judged: an emulator's CPU time depends on the host."""
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        web = json.loads((FIXTURES / "pods.json").read_text())["items"][0]
        many = [web | {"metadata": web["metadata"] | {"name": f"web-{i}", "uid": f"{i:08x}-1111-4a4a-8b8b-0123456789ab"}}
                for i in range(500)]
        size = len(json.dumps(many))
        node.start(node.configuration(period="1s"))
        node.write_pods(many)
        node.start_kube()
        vm.wait_until(f"[ $(ls {RUN}/pods | wc -l) -eq 500 ]", timeout=240)
        kube = Daemon(vm, "headroom-kube")
        first = kube.rss_mib()
        vm.run("sleep 3")
        begun, spent = node.kube_status()["polls"], Spent(kube)
        vm.run("sleep 20")
        polls, used = node.kube_status()["polls"] - begun, spent.cpu_seconds()
        assert node.kube_status()["filesWritten"] == 500, "nothing was written twice"
        files = int(vm.run(f"cat {RUN}/pods/* | wc -c", check=True).out)
        # In the loop: a flood of files is read a few at a time.
        hangs = re.search(r"^headroom_loop_stalls_total (\S+)", node.metrics(), re.M)[1]
        print(f"    500 pods, a list of {size >> 10} KiB: {used / polls * 1000:.1f} ms of CPU a poll (emulated), "
              f"{kube.rss_mib():.1f} MiB ({first:.1f} at first); {files >> 10} KiB of files")
        assert polls >= 2, "it asks on"
        assert kube.rss_mib() < 96, kube.rss_mib()
        assert float(hangs) == 0


def test_it_is_confined(vm):
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration())
        node.start_kube()
        node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        listed = vm.run("systemd-analyze security headroom-kube.service --no-pager", timeout=240, check=True).out
        exposure = float(re.search(r"Overall exposure level for headroom-kube.service: ([0-9.]+)", listed)[1])
        print(f"    exposure {exposure}")
        assert exposure < 3.0, listed
        pid = vm.run("systemctl show -P MainPID headroom-kube", check=True).out.strip()
        assert vm.run(f"stat -c %u /proc/{pid}", check=True).out.strip() != "0"
        libraries = vm.run("cat /proc/$(systemctl show -P MainPID headroomd)/maps", check=True).out
        assert "curl" not in libraries and "libssl" not in libraries, "the network's libraries are not the daemon's"
