# SPDX-License-Identifier: Apache-2.0
"""Which pod waited, and why: each kind of wait under its own cause, on stock kernels; births, ends, and what
the kernel killed."""

import json
import time

from node import Node, Pod, kubelet_configuration

MEMORY = "1G"
SWAP = "1G"
METRICS_PORT = 9750

ROOT_DISK = "/dev/nvme0n1"  # 2 GiB: twice the memory
READ_IT = f"while :; do dd if={ROOT_DISK} of=/dev/null bs=1M 2>/dev/null; done"
SECOND = 1_000_000_000


def started(node, mode="enforce", hard="40Mi", **headroom):
    """With a threshold on memory.pressure as well, quicker than any operator would set it."""
    pressure = {"memory": {"threshold": "20%", "grace": "3s"}}
    node.start(kubelet_configuration(hard=hard, mode=mode, pressure=pressure, **headroom))
    programs = node.status()["programs"]
    assert programs["stall"] == {"loaded": True, "hook": "memstall", "lost": 0}, (programs, node.journal())
    assert programs["throttle"]["loaded"] and programs["lifecycle"]["loaded"], (programs, node.journal())
    return node


def pod_status(node, name):
    return next(pod for pod in node.status()["pods"] if pod["name"] == name)


def stall_seconds(stalls):
    return {cause: waits["ns"] / SECOND for cause, waits in stalls.items()}


def print_stalls(label, stalls):
    print(f"    {label}: " + ", ".join(
        f"{cause} {waits['ns'] / SECOND:.2f} s in {waits['count']} (99% below {waits['p99_ns'] / 1e6:.1f} ms)"
        for cause, waits in stalls.items()))


def assert_quiet(node):
    """Nothing is evicted, nothing would have been, no condition holds."""
    status = node.status()
    assert not any(status["conditions"].values()), status["conditions"]
    assert status["counters"]["evicted"] == 0 and status["counters"]["would_evict"] == 0, status["counters"]
    lost = next(100 - signal["available"] / 10_000 for signal in status["signals"] if signal["signal"] == "memory.pressure")
    print(f"    memory.pressure: {lost:.1f}% of the last moment lost")


def test_a_pod_at_its_own_limit_waits_at_its_own_limit(vm):
    with Node(vm) as node:
        started(node)
        pod = node.run_script(Pod("looper"), READ_IT, "MemoryMax=32M")
        vm.run("sleep 10")
        stalls = pod_status(node, "looper")["stalls"]
        print_stalls("at memory.max", stalls)
        seconds = stall_seconds(stalls)
        assert seconds["limit"] > 0.2, seconds
        assert sum(seconds.values()) - seconds["limit"] < seconds["limit"] / 10, seconds
        assert node.alive(pod)
        assert_quiet(node)


def test_a_limit_above_it_is_a_limit_all_the_same(vm):
    with Node(vm) as node:
        started(node)
        pod = Pod("below")
        node.run_script(pod, "sleep 4; " + READ_IT)
        vm.run(f"systemctl set-property --runtime {pod.slice} MemoryMax=32M", check=True)
        vm.run("sleep 12")
        stalls = pod_status(node, "below")["stalls"]
        print_stalls("at the pod's memory.max", stalls)
        seconds = stall_seconds(stalls)
        assert seconds["limit"] > 0.2, seconds
        assert seconds.get("global", 0) + seconds.get("refault", 0) < seconds["limit"] / 10, seconds
        assert_quiet(node)


def test_memory_high_is_distinguished_from_memory_max(vm):
    with Node(vm) as node:
        started(node)
        node.run_pod(Pod("high"), "--hold 60M --churn", "MemoryHigh=40M")
        vm.run("sleep 10")
        stalls = pod_status(node, "high")["stalls"]
        print_stalls("above memory.high", stalls)
        seconds = stall_seconds(stalls)
        assert seconds["high"] > 1, seconds
        assert sum(seconds.values()) - seconds["high"] < seconds["high"] / 4, seconds
        assert_quiet(node)


def test_memory_high_near_memory_max_is_still_memory_high(vm):
    """As a kubelet with MemoryQoS writes it: the task sleeps for memory.high, although max is within a sixteenth."""
    with Node(vm) as node:
        started(node)
        node.run_pod(Pod("near"), "--hold 260M --churn", "MemoryHigh=200M", "MemoryMax=210M")
        vm.run("sleep 12")
        stalls = pod_status(node, "near")["stalls"]
        print_stalls("above a memory.high near memory.max", stalls)
        seconds = stall_seconds(stalls)
        assert seconds["high"] > 1, seconds
        assert sum(seconds.values()) - seconds["high"] < seconds["high"] / 4, seconds


def test_a_throttled_pod_waits_for_its_quota_and_for_no_memory(vm):
    with Node(vm) as node:
        started(node)
        slow = node.run_script(Pod("slow"), "while :; do :; done", "CPUQuota=10%")
        vm.run("sleep 8")
        kernels = int(vm.run(f"awk '/^throttled_usec/{{print $2}}' {slow.cgroup}/{slow.unit}/cpu.stat", check=True).out) / 1e6
        pod = pod_status(node, "slow")
        waits = pod["throttle_waits"]
        seconds = waits["ns"] / SECOND
        print(f"    throttled: {seconds:.2f} s in {waits['count']} waits, 99% below {waits['p99_ns'] / 1e6:.0f} ms; "
              f"cpu.stat has {kernels:.2f} s")
        # cpu.stat counts the same waits, as the kernel's own clock sees them.
        assert seconds > 4 and abs(seconds - kernels) < kernels / 4, (seconds, kernels)
        assert waits["count"] > 30, waits
        assert pod["stalls"] == {}, pod
        assert_quiet(node)


def test_a_reader_of_twice_the_memory_is_no_pressure(vm):
    """Page cache is there to be used up: it costs its reader some reclaim, and no other pod anything."""
    with Node(vm) as node:
        started(node)
        bank = node.run_pod(Pod("bank", "guaranteed", {"memory": "64Mi", "cpu": "1"}, {"memory": "64Mi", "cpu": "1"}),
                            "--hold 40M --churn", "MemoryMax=64M")
        reader = node.run_script(Pod("reader"), READ_IT)
        vm.run("sleep 25")
        status = node.status()
        print_stalls("the reader", pod_status(node, "reader")["stalls"])
        print_stalls("the node", status["waits"]["stalls"])
        bystander = stall_seconds(pod_status(node, "bank")["stalls"])
        assert sum(bystander.values()) < 0.5, bystander
        assert node.alive(reader) and node.alive(bank)
        assert_quiet(node)


def test_what_the_node_has_not_is_the_nodes_fault(vm):
    with Node(vm) as node:
        started(node, mode="observe", hard="1Mi")
        node.run_pod(Pod("hog"), f"--hold {node.holding_to_leave(0) + 250}M --churn")
        vm.run("sleep 20", timeout=120)
        stalls = pod_status(node, "hog")["stalls"]
        print_stalls("the hog", stalls)
        seconds = stall_seconds(stalls)
        assert seconds["global"] > 0.5, seconds
        assert seconds.get("limit", 0) + seconds.get("high", 0) < seconds["global"] / 10, seconds


def test_a_cgroup_is_shown_when_born_and_forgotten_when_gone(vm):
    """By the kernel's word: the next sweep is a minute away."""
    with Node(vm) as node:
        started(node, sweepPeriod="60s")
        vm.run("sleep 2")
        web = node.run_pod(Pod("web"), "--hold 8M")
        vm.run("sleep 0.5")
        assert 'pod="web"' in node.metrics()
        vm.run(f"systemctl kill -s KILL {web.unit}; systemctl stop {web.unit} {web.slice}; sleep 0.5")
        page = node.metrics()
        assert 'pod="web"' not in page, [line for line in page.splitlines() if 'pod="web"' in line]
        wakeups = next(line for line in page.splitlines() if line.startswith('headroom_wakeups_total{source="lifecycle"}'))
        print(f"    {wakeups}")


def test_an_oom_kill_of_the_kernel_is_reported_with_pod_and_cgroup(vm):
    with Node(vm) as node:
        started(node)
        pod = node.run_pod(Pod("greedy"), "--hold 1M --after 1 --until 300M", "MemoryMax=32M", "MemorySwapMax=0")
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | "
                      "grep -q '^headroom_kernel_oom_kills_total{scope=\"limit\"} 1'", timeout=30)
        lines = vm.run("journalctl -b -u headroomd -o json HEADROOM_OOM_SCOPE=limit", check=True).out
        entry = json.loads(lines.splitlines()[-1])
        print(f"    {entry['MESSAGE']}")
        assert entry["HEADROOM_POD"] == "default/greedy" and entry["HEADROOM_POD_UID"] == pod.uid, entry
        assert entry["HEADROOM_CGROUP_PATH"].endswith(f"/{pod.slice}/{pod.unit}"), entry
        assert entry["HEADROOM_COMM"] == "workload" and int(entry["HEADROOM_PID"]) > 1, entry
        assert entry["MESSAGE"].endswith("memory.max of its cgroup was hit"), entry


def test_a_kill_of_the_kernel_for_the_node_is_held_against_our_ranking(vm):
    """The pod over its request by most goes first with us; with the kernel, the one with the highest score."""
    with Node(vm) as node:
        started(node, mode="observe")
        node.run_pod(Pod("meek", "burstable", {"memory": "64Mi"}), "--hold 8M", "OOMScoreAdjust=1000")
        vm.run("sleep 6")  # the ranking that stands by is made anew every five seconds
        node.run_pod(Pod("hog"), "--rate 100M --until 4G", "MemorySwapMax=0")
        agreed, other = ('headroom_kernel_oom_kills_total{agreed="%s",scope="node"} 1' % word for word in ("true", "false"))
        vm.wait_until(f"curl -sS http://127.0.0.1:9750/metrics | grep -qF '{agreed}'", timeout=90)
        assert other in node.metrics()
        journal = "journalctl -b -u headroomd -o cat | grep 'the node ran out of memory'"
        vm.wait_until(f"[ $({journal} | wc -l) -ge 2 ]", timeout=20)
        said = vm.run(journal, check=True).out.splitlines()
        print("\n".join(f"    {line}" for line in said))
        assert "default/meek" in said[0] and said[0].endswith("headroom would have evicted default/hog"), said
        assert "default/hog" in said[1] and said[1].endswith("the node ran out of memory"), said


def test_the_exits_of_an_evicted_pod_are_counted(vm):
    with Node(vm) as node:
        started(node, hard="300Mi")
        node.run_pod(Pod("hog"), "--hold 1M --after 1 --until 4G")
        record, = node.wait_for_evictions(1)
        deadline = time.monotonic() + 10
        line = "headroom_victim_exits_total 1"
        while line not in node.metrics() and time.monotonic() < deadline:
            vm.run("sleep 0.3")
        assert line in node.metrics(), record


def test_watching_costs_a_fraction_of_the_waiting(vm):
    """Time in the programs against the time of the waits they saw, by the kernel's own accounting, in one run. A guard
    against a blunder; a part of it is the accounting itself."""
    names = {"enter", "leave", "direct_reclaim", "limit_reclaim", "compaction"}
    with Node(vm) as node:
        started(node)
        vm.run("sysctl -q -w kernel.bpf_stats_enabled=1", check=True)
        try:
            node.run_script(Pod("looper"), READ_IT, "MemoryMax=32M")
            vm.run("sleep 10")
            waited = sum(waits["ns"] for waits in pod_status(node, "looper")["stalls"].values())
            programs = json.loads(vm.run("bpftool prog show -j", check=True).out)
        finally:
            vm.run("sysctl -q -w kernel.bpf_stats_enabled=0")
        spent = 0
        for program in programs:
            if program.get("run_cnt"):
                spent += program["run_time_ns"] if program.get("name") in names else 0
                print(f"    {program.get('name')}: {program['run_cnt']} runs, "
                      f"{program['run_time_ns'] / program['run_cnt']:.0f} ns each")
        print(f"    {spent / 1e6:.1f} ms in the programs for {waited / 1e6:.0f} ms of waits")
        assert spent < waited / 3, (spent, waited)
