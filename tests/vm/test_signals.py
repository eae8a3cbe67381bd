# SPDX-License-Identifier: Apache-2.0
"""Every signal with real pressure: the right pod goes, the others stay, conditions come and go; and what must not evict."""

from disk_node import ROOT, DiskNode, configuration, evicted, expect_fresh_pod_lives, wait_for_condition
from node import Node, Pod

KERNELS = ("6.12",)
MEMORY = "2G"
DISK = "512M"
SWAP = "256M"


def test_the_pod_slice_alone_is_short_of_memory(vm):
    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a; systemctl set-property --runtime kubepods.slice MemoryMax=700M", check=True)
        try:
            node.start(configuration({"memory.available": "100Mi"}, enforce=("pods",)))
            web = node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 150M")
            bank = node.run_pod(Pod("bank", "guaranteed", {"memory": "128Mi"}, {"memory": "128Mi"}), "--hold 100M")
            hog = node.run_pod(Pod("hog"), "--until 4G --rate 100M")
            names, records = evicted(node, 1)
            assert names == ["hog"] and records[0]["signal"] == "allocatableMemory.available", records
            assert node.alive(web) and node.alive(bank) and not node.alive(hog)
            assert node.kernel_oom_kills() == 0
            wait_for_condition(node, "MemoryPressure", False)
            expect_fresh_pod_lives(node)
        finally:
            vm.run("systemctl set-property --runtime kubepods.slice MemoryMax=infinity")


def test_bytes_of_a_disk(vm):
    with DiskNode(vm) as node:
        node.start(configuration({"nodefs.available": "150Mi"}, disk=node.paths()))
        small = node.run_with_volume(Pod("small"), "head -c 20M /dev/zero > file; sync")
        asked = node.run_with_volume(Pod("asked", "burstable", {"ephemeral-storage": "400Mi", "memory": "8Mi"}),
                                     "head -c 80M /dev/zero > file; sync")
        static = Pod("static", annotations={"kubernetes.io/config.source": "file"})
        node.run_with_volume(static, "head -c 60M /dev/zero > file; sync")
        hog = node.run_with_volume(Pod("hog"), "sleep 3; head -c 230M /dev/zero > file; sync")
        names, records = evicted(node, 1)
        assert names == ["hog"], [(entry["name"], entry["usage"], entry["selection"]) for entry in records[0]["ranking"]]
        fates = {entry["name"]: entry["selection"] for entry in records[0]["ranking"]}
        assert fates["static"] == "critical" and fates["asked"] == "outranked", fates
        assert records[0]["usage"] > 150 << 20 and records[0]["signal"] == "nodefs.available", records
        assert records[0]["message"].startswith("The node was low on resource: ephemeral-storage. Threshold "), records
        assert vm.run(f"test -e {node.volume(hog)}").code != 0, "its emptyDir went with it"
        wait_for_condition(node, "DiskPressure", False)
        assert all(node.alive(pod) for pod in (small, asked, static))
        expect_fresh_pod_lives(node)
        assert len(node.evictions()) == 1, "one was enough"


def test_inodes_of_a_disk(vm):
    with DiskNode(vm) as node:
        free = int(vm.run(f"stat -f -c %d {ROOT}", check=True).out)
        node.start(configuration({"nodefs.inodesFree": str(free - 6000)}, disk=node.paths()))
        big = node.run_with_volume(Pod("big"), "head -c 100M /dev/zero > file; sync")
        many = node.run_with_volume(Pod("many"), "sleep 2; seq 1 8000 | xargs touch")
        names, records = evicted(node, 1)
        assert names == ["many"] and records[0]["usage"] > 5000, records
        assert records[0]["message"].startswith("The node was low on resource: inodes. "), records
        wait_for_condition(node, "DiskPressure", False)
        assert node.alive(big)


def test_reclaim_comes_before_pods(vm):
    with DiskNode(vm) as node:
        vm.run(f"mkdir {ROOT}/images; head -c 250M /dev/zero > {ROOT}/images/old; sync", check=True)
        node.start(configuration({"nodefs.available": "150Mi"}, disk=node.paths(),
                                 reclaim={"user": "root", "images": ["/bin/rm", "-rf", f"{ROOT}/images"], "timeout": "20s"}))
        pod = node.run_with_volume(Pod("innocent"), "head -c 120M /dev/zero > file; sync")
        vm.wait_until(f"! test -e {ROOT}/images")
        wait_for_condition(node, "DiskPressure", False)
        assert node.alive(pod) and not node.evictions()
        assert 'headroom_node_reclaims_total{outcome="done"} 1' in node.metrics()


def test_reclaim_that_fails_is_reported_and_a_pod_goes(vm):
    with DiskNode(vm) as node:
        node.start(configuration({"nodefs.available": "150Mi"}, disk=node.paths(), reclaim={"images": ["/bin/false"]}))
        node.run_with_volume(Pod("hog"), "head -c 350M /dev/zero > file; sync")
        names, _ = evicted(node, 1)
        assert names == ["hog"]
        assert "failed after" in node.journal()
        assert 'headroom_node_reclaims_total{outcome="failed"} 0' not in node.metrics()


def test_limits_of_local_storage(vm):
    with DiskNode(vm) as node:
        node.start(configuration({"memory.available": "50Mi"}, disk=node.paths(measurePeriod="1s")))
        within = node.run_with_volume(Pod("within"), "head -c 10M /dev/zero > file; sync", size_limit="30Mi")
        node.run_with_volume(Pod("volume"), "head -c 40M /dev/zero > file; sync", size_limit="30Mi")
        node.run_with_volume(Pod("whole", limits={"ephemeral-storage": "20Mi"}), "head -c 30M /dev/zero > file; sync")
        names, records = evicted(node, 2)
        assert sorted(names) == ["volume", "whole"], names
        by_name = {record["pod"]["name"]: record for record in records}
        assert by_name["volume"]["signal"] == "emptydirfs.limit", by_name
        assert by_name["volume"]["message"] == 'Usage of EmptyDir volume "data" exceeds the limit "30Mi". '
        assert by_name["whole"]["signal"] == "ephemeralpodfs.limit", by_name
        assert node.alive(within)
        assert 'kubelet_evictions{eviction_signal="emptydirfs.limit"} 1' in node.metrics()


def test_pids(vm):
    with Node(vm, replayed=True) as node:
        before = vm.run("cat /proc/sys/kernel/pid_max", check=True).out.strip()
        try:
            vm.run("sysctl -q kernel.pid_max=2000", check=True)
            node.start(configuration({"pid.available": "800"}))
            calm = node.run_pod(Pod("calm"), "--tasks 100")
            kept = node.run_pod(Pod("kept", priority=100), "--tasks 200")
            # One process: what runs out is tasks.
            bomb = node.run_pod(Pod("bomb"), "--after 1 --tasks 1300", "TasksMax=infinity")
            names, records = evicted(node, 1)
            assert names == ["bomb"] and records[0]["usage"] > 200, records
            assert records[0]["message"].startswith("The node was low on resource: pids. "), records
            assert node.alive(calm) and node.alive(kept) and not node.alive(bomb)
            wait_for_condition(node, "PIDPressure", False)
            expect_fresh_pod_lives(node)
        finally:
            node.leave()
            vm.run(f"sysctl -q kernel.pid_max={before}")


def test_pids_of_two_fork_bombs(vm):
    """Their processes stay as zombies long after their cgroups are empty: no other pod dies for that."""
    with Node(vm, replayed=True) as node:
        before = vm.run("cat /proc/sys/kernel/pid_max; mkfifo /run/never-written", check=True).out.split()[0]
        try:
            vm.run("sysctl -q kernel.pid_max=3000", check=True)
            node.start(configuration({"pid.available": "800"}))
            calm = [node.run_pod(Pod(f"calm-{i}"), f"--tasks {tasks}") for i, tasks in enumerate((1, 2, 50))]
            # Each process waits until the pipe has a writer. Either alone is enough for the threshold.
            bombs = [node.run_script(Pod(f"bomb-{i}"), "sleep 2; for i in $(seq 2400); do read x < /run/never-written & done; wait",
                                     "TasksMax=infinity") for i in range(2)]
            records = node.wait_for_evictions(2, timeout=180)  # thousands of processes exit in an emulator
            names = [record["pod"]["name"] for record in records]
            assert sorted(names) == ["bomb-0", "bomb-1"], names
            wait_for_condition(node, "PIDPressure", False, timeout=60)
            assert len(node.evictions()) == 2, [record["pod"]["name"] for record in node.evictions()]
            assert all(record["signal"] == "pid.available" for record in records), records
            assert all(node.alive(pod) for pod in calm) and not any(node.alive(pod) for pod in bombs)
        finally:
            node.leave()
            vm.run(f"sysctl -q kernel.pid_max={before}; rm -f /run/never-written")


def test_pre_stop_runs_in_the_pod_and_is_part_of_its_grace(vm):
    with Node(vm, replayed=True) as node:
        node.start(configuration({"memory.available": "60Mi"}, soft={"memory.available": "900Mi"}))
        pod = Pod("db", pre_stop=["/bin/sh", "-c", "cat /proc/self/cgroup > /run/flushed; sleep 1"])
        node.run_pod(pod, f"--hold {node.holding_to_leave(600)}M")
        _, records = evicted(node, 1)
        assert pod.slice in vm.run("cat /run/flushed", check=True).out, "the command is the pod's"
        instants = records[0]["instants_ns"]
        assert instants["terminated"] - instants["decided"] > 900e6, instants
        assert not instants["killed"], "it obeyed SIGTERM"


def test_what_is_no_pressure_evicts_no_pod(vm):
    with Node(vm, replayed=True) as node:
        node.start(configuration({"memory.available": "500Mi", "pid.available": "10%"}))
        pods = [
            node.run_script(Pod("cache"), "head -c 1200M /dev/nvme0n1 > /dev/null; exec sleep infinity"),
            node.run_script(Pod("limited"), "while :; do /opt/headroom/bin/workload --hold 300M --exit; sleep 0.2; done",
                            "MemoryMax=100M", "OOMPolicy=continue"),
            node.run_script(Pod("throttled"), "while :; do :; done", "CPUQuota=5%"),
            node.run_script(Pod("forks"), "while :; do sleep 0.01 & done 2>/dev/null", "TasksMax=64"),
        ]
        vm.run("sleep 10")
        assert not node.evictions(), node.evictions()
        assert not any(node.status()["conditions"].values())
        assert node.alive(pods[0]) and node.alive(pods[2])


def holding_now_and_then(mebibytes, times):
    """Below for three seconds, above for one and a half, so often; then below for good."""
    hold = f"/opt/headroom/bin/workload --hold {mebibytes}M"
    return f"for i in $(seq {times}); do timeout 3 {hold}; sleep 1.5; done; touch /run/steady; exec {hold}"


def test_a_soft_threshold_whose_signal_recovers_for_a_moment_starts_afresh(vm):
    with Node(vm, replayed=True) as node:
        vm.run("rm -f /run/steady")
        node.start(configuration(soft={"memory.available": "900Mi"}, grace="4s"))
        node.run_pod(Pod("calm"), "--hold 8M")
        hold = node.holding_to_leave(700)
        node.run_script(Pod("restless"), holding_now_and_then(hold, 4))
        wait_for_condition(node, "MemoryPressure", True)
        vm.wait_until("test -e /run/steady", timeout=60)
        assert not node.evictions(), "never below for as long as its grace"
        names, records = evicted(node, 1)
        assert names == ["restless"] and records[0]["kind"] == "soft", records
        since = records[0]["instants_ns"]["first_crossed"] / 1e9
        steady = float(vm.run("echo $(($(date +%s) - $(stat -c %Y /run/steady)))", check=True).out)
        uptime = float(vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)
        assert since > uptime - steady - 2, (since, uptime, steady)
        vm.run("rm -f /run/steady")


def test_a_pod_whose_services_restart_is_taken_again_and_no_other(vm):
    """Its cgroup never empties, for systemd starts both services at once: it is the victim again, not the next in the ranking."""
    with Node(vm, replayed=True) as node:
        killed_before = node.kernel_oom_kills()
        node.start(configuration({"memory.available": "1Gi"}))
        bystander = node.run_pod(Pod("bystander"), "--hold 80M")
        again = ("Restart=always", "RestartSec=100ms")
        hog = node.run_pod(Pod("hog"), "--hold 1M --until 4G", *again)
        beside = vm.spawn("exec /opt/headroom/bin/workload --hold 20M", unit="beside.service", slice=hog.slice, properties=again)
        try:
            names = [record["pod"]["name"] for record in node.wait_for_evictions(3, timeout=180)]
            assert set(names) == {"hog"}, names
            assert node.alive(bystander) and node.kernel_oom_kills() == killed_before
        finally:
            vm.stop(beside, hog.unit)


def test_two_thresholds_of_one_signal_are_one_eviction(vm):
    """It falls through the soft one and the hard one within its grace: the hard one acts, once."""
    with Node(vm, replayed=True) as node:
        node.start(configuration({"memory.available": "300Mi"}, soft={"memory.available": "900Mi"}, grace="8s"))
        killed_before = node.kernel_oom_kills()  # by tests before this one, at limits
        calm = node.run_pod(Pod("calm", "burstable", {"memory": "100Mi"}), "--hold 60M")
        hog = node.run_pod(Pod("hog"), "--until 4G --rate 800M")
        names, records = evicted(node, 1)
        assert names == ["hog"] and records[0]["kind"] == "hard", records
        assert not records[0]["instants_ns"]["terminated"], "no SIGTERM"
        vm.run("sleep 6")
        assert len(node.evictions()) == 1 and node.alive(calm) and not node.alive(hog)
        # Each by itself: above the hard one for good, the soft one takes its time.
        late = node.run_pod(Pod("late"), f"--hold {node.holding_to_leave(600)}M")
        names, records = evicted(node, 2)
        assert names[1] == "late" and records[1]["kind"] == "soft" and records[1]["instants_ns"]["terminated"], records[1]
        assert node.alive(calm) and not node.alive(late)
        assert node.kernel_oom_kills() == killed_before


def static(pod):
    pod.annotations = {"kubernetes.io/config.source": "file"}
    return pod


def test_a_static_pod_that_is_the_culprit_goes_where_that_is_wanted(vm):
    with Node(vm, replayed=True) as node:
        hard = {"memory.available": "400Mi"}
        node.start(configuration(hard))
        node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
        # Over its request, too, but critical.
        proxy = node.run_pod(static(Pod("proxy", priority=2_000_000_000)), "--hold 200M")
        hog = node.run_pod(static(Pod("hog")), f"--hold {node.holding_to_leave(250)}M")
        names, records = evicted(node, 1)
        fates = {entry["name"]: entry["selection"] for entry in records[0]["ranking"]}
        assert names == ["web"] and fates["hog"] == fates["proxy"] == "critical", (names, fates)
        assert node.alive(hog) and node.alive(proxy), "the kubelet's rule"
        node.configure(configuration(hard, evictStaticPods="culprit"))
        vm.run("systemctl reload headroomd.service", check=True)
        vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=30)
        wait_for_condition(node, "MemoryPressure", False)
        assert node.evictions()[-1]["pod"]["name"] == "hog", node.evictions()[-1]["pod"]
        assert node.alive(proxy), "one of critical priority never goes"


def test_swap(vm):
    with Node(vm, replayed=True) as node:
        vm.run("swapon /dev/disk/by-id/virtio-swap 2>/dev/null; swapon --show | grep -q .", check=True)
        try:
            node.start(configuration({"swap.available": "100Mi"}))
            calm = node.run_pod(Pod("calm", "burstable", {"memory": "100Mi"}), "--hold 80M")
            node.run_pod(Pod("swapper"), "--hold 300M", "MemoryHigh=80M")
            names, records = evicted(node, 1)
            assert names == ["swapper"] and records[0]["signal"] == "swap.available", records
            assert node.alive(calm)
            wait_for_condition(node, "MemoryPressure", False)
        finally:
            node.leave()
            vm.run("swapoff -a")


def test_swap_that_comes_and_goes_is_known_or_not_and_no_pod_goes_for_it(vm):
    def free_swap():
        return [signal["available"] for signal in node.status()["signals"] if signal["signal"] == "swap.available"]

    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a", check=True)
        try:
            node.start(configuration({"swap.available": "10%", "memory.available": "100Mi"}))
            pods = [node.run_pod(Pod("calm"), "--hold 80M"), node.run_pod(Pod("large"), "--hold 500M")]
            for switch in ("swapon /dev/disk/by-id/virtio-swap", "swapoff -a") * 3:
                vm.run(f"{switch}; sleep 2", check=True, timeout=60)
                assert bool(free_swap()) == switch.startswith("swapon"), (switch, free_swap())
                assert not any(node.status()["conditions"].values()), switch
            assert all(node.alive(pod) for pod in pods) and not node.evictions()
        finally:
            node.leave()
            vm.run("swapoff -a")
