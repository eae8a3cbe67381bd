# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a real node: deaf pods, vanished pods, a killed daemon. No other pod may die of it."""

from node import AUDIT, Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
MEMORY = "2G"
METRICS_PORT = 9750


def innocents(node):
    pods = [node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 100M"),
            node.run_pod(Pod("cron"), "--hold 8M")]
    node.vm.wait_until(f"[ $(cat {pods[0].cgroup}/memory.current) -gt {100 << 20} ]")
    return pods


def grace_given(record):
    """Seconds between SIGTERM and SIGKILL."""
    return (record["instants_ns"]["killed"] - record["instants_ns"]["terminated"]) / 1e9


def test_a_pod_that_ignores_sigterm_is_killed_when_its_grace_is_over(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="150Mi", soft="900Mi", grace="1s", max_pod_grace=2))
        others = innocents(node)
        deaf = node.run_pod(Pod("deaf"), f"--deaf --hold {node.holding_to_leave(500)}M")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "deaf" and record["kind"] == "soft", record
        assert 2.0 <= grace_given(record) < 3.0, record
        assert not node.alive(deaf) and all(node.alive(pod) for pod in others)


def test_the_daemon_killed_in_mid_grace_resumes_it(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="150Mi", soft="900Mi", grace="1s", max_pod_grace=6))
        others = innocents(node)
        deaf = node.run_pod(Pod("deaf"), f"--deaf --hold {node.holding_to_leave(500)}M")
        vm.wait_until("grep -q deaf /run/headroom/victims.json", timeout=30)
        killed_at = float(vm.run("systemctl kill -s KILL headroomd.service; cut -d' ' -f1 /proc/uptime", check=True).out)
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "deaf", record
        # The SIGTERM on record is the former life's, and the kill follows as soon as grace and restart are over.
        assert record["instants_ns"]["terminated"] / 1e9 < killed_at, record
        assert 6.0 <= grace_given(record) < 15.0, record
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "1"
        assert not node.alive(deaf) and all(node.alive(pod) for pod in others)
        assert len(node.evictions()) == 1, "it was not evicted twice"


def test_the_daemon_killed_during_a_pre_stop_command_does_not_run_it_again(vm):
    """Of eight seconds of grace two are kept for SIGTERM. The command goes on by itself; its time is what it was."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="150Mi", soft="900Mi", grace="1s", max_pod_grace=8))
        others = innocents(node)
        run = "cut -d' ' -f1 /proc/uptime >> /run/pre-stop; sleep 100"
        deaf = node.run_pod(Pod("deaf", pre_stop=["/bin/sh", "-c", run]), f"--deaf --hold {node.holding_to_leave(500)}M")
        vm.wait_until("test -s /run/pre-stop && grep -q deaf /run/headroom/victims.json", timeout=30)
        killed_at = float(vm.run("systemctl kill -s KILL headroomd.service; cut -d' ' -f1 /proc/uptime", check=True).out)
        vm.run("sleep 0.5")
        left = vm.run(f"for pid in $(cat {deaf.cgroup}/{deaf.unit}/cgroup.procs); do cat /proc/$pid/comm; done", check=True)
        assert "sleep" in left.out.split(), "the command outlives the daemon"
        # It runs in its container's cgroup, started by a process that has no other.
        assert vm.run("systemctl list-units --plain --no-legend 'headroom-commands@*.service' | wc -l", check=True).out.strip() == "1"
        record, = node.wait_for_evictions(1)
        began, = (float(line) for line in vm.run("cat /run/pre-stop; rm /run/pre-stop", check=True).out.split())
        terminated, killed = (record["instants_ns"][act] / 1e9 for act in ("terminated", "killed"))
        assert began < killed_at < terminated, record
        assert 5.5 <= terminated - began < 8, (began, record)
        assert 7.5 <= killed - began < 9.5, (began, record)
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "1"
        assert not node.alive(deaf) and all(node.alive(pod) for pod in others)
        assert len(node.evictions()) == 1, "it was not evicted twice"
        print(f"    SIGTERM {terminated - began:.1f} s and SIGKILL {killed - began:.1f} s after the command began, over a restart")


def test_a_victim_that_vanishes_between_judging_and_killing_costs_no_other_pod(vm):
    """The hog ends by itself within a moment of crossing the threshold, ten times over."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="800Mi"))
        others = innocents(node)
        available = node.memory_available() >> 20
        for i in range(10):
            # A little more each time, so that its own end falls before, into and after the kill.
            until = available - 800 + 8 * i
            hog = node.run_pod(Pod(f"hog-{i}"), f"--until {until}M --exit")
            vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=30)
        killed = {record["pod"]["name"] for record in node.evictions()}
        assert killed <= {f"hog-{i}" for i in range(10)}, killed
        assert all(node.alive(pod) for pod in others)
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "0"
        print(f"    {len(killed)} of 10 were evicted, the others ended first")


def test_a_full_audit_disk_does_not_hold_up_the_kill(vm):
    """The audit log's disk is full: the pod dies in time all the same, and its record is written when there is room."""
    logs = AUDIT.rsplit("/", 1)[0]
    with Node(vm) as node:
        vm.run(f"mkdir -p {logs} && mount -t tmpfs -o size=16k tmpfs {logs} && "
               f"head -c 16384 /dev/zero > {logs}/filler", check=True)
        try:
            node.start(kubelet_configuration(hard="300Mi"))
            hog = node.run_pod(Pod("hog"), "--until 4G")
            vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=60)
            assert node.kernel_oom_kills() == 0
            assert not node.evictions()
            vm.run(f"rm {logs}/filler")
            record, = node.wait_for_evictions(1, timeout=30)
            assert record["pod"]["name"] == "hog"
        finally:
            node.stop()
            vm.run(f"umount {logs}")


def test_reload_keeps_the_old_policy_when_the_new_one_is_wrong(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        node.configure("evictionHard: {memory.available: nonsense}")
        vm.run("systemctl reload headroomd.service", check=True)
        vm.wait_until("journalctl -b -u headroomd -o cat | grep -q nonsense")
        hog = node.run_pod(Pod("hog"), "--until 4G")
        node.wait_for_evictions(1)
        assert not node.alive(hog) and node.kernel_oom_kills() == 0


def test_a_manifest_that_appears_is_read(vm):
    """Two BestEffort pods; the later manifest gives the larger one a request it stays within."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        node.run_pod(Pod("big", "burstable", {"memory": "1Gi"}), "--hold 700M")
        hog = node.run_pod(Pod("hog"), "--rate 200M --until 4G")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "hog", record
        assert not node.alive(hog)
