# SPDX-License-Identifier: Apache-2.0
"""The ranking in oom_score_adj: the kernel, when it must kill, takes the pod that headroom would have evicted."""

from node import Node, Pod, kubelet_configuration

MEMORY = "2G"
METRICS_PORT = 9750


CAPABLE = "/run/systemd/system/headroomd.service.d/oom-score.conf"


def may_lower(node):
    """As headroom.yaml(5) has it."""
    node.vm.put(b"[Service]\nCapabilityBoundingSet=CAP_SYS_RESOURCE\n", CAPABLE)
    node.vm.run("systemctl daemon-reload", check=True)


def score(node, pod) -> int:
    return int(node.vm.run(f"cat /proc/$(head -1 {pod.cgroup}/{pod.unit}/cgroup.procs)/oom_score_adj", check=True).out)


def has_score(node, pod, value, timeout=20):
    node.vm.wait_until(f"[ $(cat /proc/$(head -1 {pod.cgroup}/{pod.unit}/cgroup.procs)/oom_score_adj) -eq {value} ]",
                       timeout=timeout)


def two_of_besteffort(node):
    """The first of the ranking holds less: by size alone the kernel would take the other."""
    node.vm.run("swapoff -a")
    small = node.run_pod(Pod("small", priority=-10), "--hold 60M")
    big = node.run_pod(Pod("big", priority=100), "--hold 200M")
    for pod, held in ((small, 59), (big, 199)):
        node.vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {held << 20} ]")
    return small, big


def test_the_kernel_takes_the_first_of_the_ranking(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="150Mi", oomScoreAdj="mirror"))
        small, big = two_of_besteffort(node)
        bank = node.run_script(Pod("bank", "guaranteed", {"memory": "600Mi", "cpu": "1"}, {"memory": "600Mi", "cpu": "1"}),
                               "until [ -e /run/go ]; do sleep 0.1; done; exec /opt/headroom/bin/workload --until 470M")
        try:
            has_score(node, small, 1000)
            has_score(node, big, 625)
            assert score(node, bank) == 0, "a Guaranteed pod's is not to be changed"
            vm.run("systemctl set-property --runtime kubepods.slice MemoryMax=700M && touch /run/go", check=True)
            sample = 'headroom_kernel_oom_kills_total{agreed="true",scope="pods"} 1'
            vm.wait_until(f"curl -sS http://127.0.0.1:9750/metrics | grep -qF '{sample}'", timeout=60)
            assert not node.alive(small) and node.alive(big) and node.alive(bank)
            page = node.metrics()
            assert 'headroom_kernel_oom_kills_total{agreed="false",scope="pods"} 0' in page
            assert 'headroom_oom_score_adj_writes_total{outcome="failed"} 0' in page
            assert node.evictions() == []
            has_score(node, big, 1000)  # the first of those who are left
        finally:
            vm.run("rm -f /run/go; systemctl set-property --runtime kubepods.slice MemoryMax=infinity; swapon -a")


def test_what_was_found_is_put_back(vm):
    """Turned off, stopped, and killed in between: nothing of it stays."""
    with Node(vm) as node:
        may_lower(node)
        mirror, leave = (kubelet_configuration(hard="150Mi", oomScoreAdj=word) for word in ("mirror", "leave"))
        node.start(mirror)
        small = node.run_pod(Pod("small", priority=-10), "--hold 20M", "OOMScoreAdjust=200")
        big = node.run_pod(Pod("big"), "--hold 40M")
        spared = node.run_pod(Pod("spared", priority=-100), "--hold 20M", "OOMScoreAdjust=-500")
        has_score(node, small, 625)
        has_score(node, big, 531)
        assert score(node, spared) == -500, "its owner protects it"
        node.configure(leave)
        vm.run("systemctl reload headroomd.service", check=True)
        has_score(node, small, 200)
        has_score(node, big, 0)
        node.configure(mirror)
        vm.run("systemctl reload headroomd.service", check=True)
        has_score(node, small, 625)
        vm.run("systemctl kill -s KILL headroomd.service", check=True)
        vm.wait_until("systemctl is-active --quiet headroomd.service && headroomctl status >/dev/null", timeout=30)
        assert score(node, small) == 625
        node.stop()
        assert score(node, small) == 200 and score(node, big) == 0
        assert vm.run("test -e /run/headroom/oom-scores.json").code == 1
        # A value given by a runtime with CAP_SYS_RESOURCE can be lowered too.
        node.start(mirror)
        given = node.run_pod(Pod("given", priority=50), "--hold 20M", "OOMScoreAdjust=1000")
        has_score(node, given, 507)
        assert 'headroom_oom_score_adj_writes_total{outcome="failed"} 0' in node.metrics()


def test_without_a_next_daemon_it_is_put_back_too(vm):
    """After a SIGKILL: by a daemon that cannot start, and by --restore, which does nothing while a daemon runs."""
    with Node(vm) as node:
        may_lower(node)
        mirror, wrong = (kubelet_configuration(hard="150Mi", oomScoreAdj=word) for word in ("mirror", "neither"))
        node.start(mirror)
        small = node.run_pod(Pod("small", priority=-10), "--hold 20M", "OOMScoreAdjust=200")
        has_score(node, small, 1000)
        node.configure(wrong)
        vm.run("systemctl kill -s KILL headroomd.service", check=True)
        vm.wait_until("systemctl is-failed --quiet headroomd.service", timeout=30)
        assert score(node, small) == 200
        node.start(mirror)
        has_score(node, small, 1000)
        refused = vm.run("headroomd --restore")
        assert refused.code == 1 and "another headroomd is in mode enforce" in refused.out, refused
        assert score(node, small) == 1000
        vm.put(b"[Service]\nRestart=no\n", "/run/systemd/system/headroomd.service.d/once.conf")
        try:
            vm.run("systemctl daemon-reload; systemctl kill -s KILL headroomd.service", check=True)
            vm.wait_until("systemctl is-failed --quiet headroomd.service", timeout=30)
            assert score(node, small) == 1000
            vm.run("headroomd --restore", check=True)
            assert score(node, small) == 200
            assert vm.run("test -e /run/headroom/oom-scores.json").code == 1
        finally:
            vm.run("rm /run/systemd/system/headroomd.service.d/once.conf; systemctl daemon-reload; systemctl reset-failed headroomd.service")


def test_one_that_observes_beside_it_takes_nothing_back(vm):
    with Node(vm) as node:
        may_lower(node)
        node.start(kubelet_configuration(hard="150Mi", oomScoreAdj="mirror"))
        small = node.run_pod(Pod("small", priority=-10), "--hold 20M", "OOMScoreAdjust=200")
        has_score(node, small, 1000)
        state = "cat /run/headroom/oom-scores.json"
        before = vm.run(state, check=True).out
        observing = kubelet_configuration(hard="150Mi", mode="observe", oomScoreAdj="mirror", listen="")
        vm.put(observing.encode(), "/run/observing.yaml")
        vm.spawn("exec /opt/headroom/bin/headroomd --config /run/observing.yaml", unit="headroom-test-observer.service")
        try:
            vm.wait_until("journalctl -u headroom-test-observer.service | grep -q 'this daemon only observes'", timeout=30)
            vm.run("sleep 5; kill -HUP $(systemctl show -P MainPID headroom-test-observer.service); sleep 3", check=True, timeout=30)
            assert vm.run("systemctl is-active headroom-test-observer.service").out.strip() == "active"
            assert score(node, small) == 1000
            assert vm.run(state, check=True).out == before
        finally:
            vm.run("systemctl stop headroom-test-observer.service; rm -f /run/observing.yaml")
        assert score(node, small) == 1000 and vm.run(state, check=True).out == before
