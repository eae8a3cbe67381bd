# SPDX-License-Identifier: Apache-2.0
"""The threads of the daemon, compiled with ThreadSanitizer, all at work at once: it reports no race, no lock order and no leak of a thread.

The sanitizer sees a race only between accesses that happen, so everything that has a thread is made to work: scrapes, calls over the
bus, edits of taints, recordings, reloads, slices, CPU pinning, OOM scores, evictions, steps of the ladder, limits of pods, swap,
bursts, suppression, a bus and a journal that restart; then a stop.
"""

import json
from pathlib import Path

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
PAYLOAD = Path(__file__).resolve().parents[2] / "build/tsan/payload"
MEMORY = "3G"
SWAP = "512M"
CPUS = 4
LOG = "/run/headroom/tsan"
SECONDS = 60

# Its shadow memory is many times what the program uses, and it needs system calls of its own.
SANITIZED = f"""[Service]
Environment="TSAN_OPTIONS=log_path={LOG} exitcode=0 suppressions=/opt/headroom/suppressions second_deadlock_stack=1 history_size=7"
MemoryMax=infinity
WatchdogSec=60s
TimeoutStopSec=60s
SystemCallFilter=
CapabilityBoundingSet=CAP_SYS_RESOURCE
"""

LOADS = {
    "scrapes": """while :; do for path in metrics metrics/cadvisor stats/summary api/status api/history api/evictions api/cpus livez; do
        curl -s --max-time 5 -o /dev/null http://127.0.0.1:9750/$path; done; done""",
    "scrapes-too": "while :; do curl -s --max-time 5 -o /dev/null http://127.0.0.1:9750/metrics; done",
    "calls": """while :; do for what in status slices cpus memory evictions pods changes; do
        headroomctl $what --json; done; headroomctl cpus repack --dry-run; done >/dev/null 2>&1""",
    "taints": "while :; do headroomctl taint load=1:PreferNoSchedule; headroomctl taint load-; done >/dev/null 2>&1",
    "recordings": "while :; do headroomctl record --for 2s -o /dev/null; done >/dev/null 2>&1",
    "reloads": "while sleep 3; do systemctl reload headroomd.service; done",
    "restarts": "while sleep 13; do systemctl restart systemd-journald; systemctl kill -s HUP dbus; done",
    "cgroups": """while :; do for n in 1 2 3 4 5 6 7 8; do mkdir /sys/fs/cgroup/headroom-test-$n; done; sleep 0.2
        rmdir /sys/fs/cgroup/headroom-test-*; done""",
    "manifests": """while sleep 1; do sed "s/NAME/pod-$((n++ % 9))/" /run/manifest > /etc/headroom/manifests/moving-$n.yaml
        rm -f /etc/headroom/manifests/moving-$((n - 5)).yaml; done""",
}
UNITS = " ".join(f"headroom-test-{name}.service" for name in LOADS)


def configuration() -> str:
    config = json.loads(kubelet_configuration(
        hard="500Mi", soft="900Mi", grace="1s", max_pod_grace=2, oomScoreAdj="mirror", slices={"mode": "enforce"},
        cpus={"mode": "enforce"}, nodeStatus="/run/headroom/node.json", cpuBurst={"budget": "20%"}, cpuSuppress={"threshold": "20%"},
        podLimits={"reclaim": True, "rescue": {"ceiling": "150%", "margin": "5%"}}, podSwap={"high": "25%", "zswapWriteback": False},
        coldMemory={"below": "70%"},
        ladder={"reclaim": {"margin": "20%"}, "squeeze": {"margin": "20%", "maxDuration": "5s"}}))
    return json.dumps(config | {"enforceNodeAllocatable": ["pods"], "systemReserved": {"cpu": "1", "memory": "100Mi"},
                                "cpuManagerPolicy": "static"}, indent=1)


def reports(vm) -> str:
    return vm.run(f"cat {LOG}.* 2>/dev/null; true").out


def test_thread_sanitizer_finds_nothing_under_load_and_at_the_end(vm):
    with Node(vm) as node:
        vm.put(SANITIZED.encode(), "/run/systemd/system/headroomd.service.d/sanitizer.conf")
        vm.run("systemctl daemon-reload; sysctl -qw vm.mmap_rnd_bits=28", check=True)
        node.start(configuration())
        vm.put(Pod("NAME").manifest().encode(), "/run/manifest")
        pinned = Pod("pinned", "guaranteed", {"memory": "64Mi", "cpu": "1"}, {"memory": "64Mi", "cpu": "1"})
        node.run_pod(pinned, "--hold 20M", "MemoryMax=64M")
        # At its limit of memory, and at its quota.
        node.run_script(Pod("limited", "burstable", {"memory": "32Mi"}), "while :; do head -c 200M /dev/zero > /dev/shm/limited; "
                        "rm /dev/shm/limited; sleep 1; done", "MemoryMax=64M", "CPUQuota=20%")
        for name, script in LOADS.items():
            vm.spawn(script, unit=f"headroom-test-{name}.service")
        try:
            for number in range(6):
                deaf = "--deaf" if number % 2 else ""
                # Of a class that is not suppressed, with a share of the CPUs that the loads keep busy: it must fill the node.
                hog = node.run_pod(Pod(f"hog-{number}", "burstable", {"cpu": "1"}), f"{deaf} --hold 1M --rate 600M --until 8G")
                node.wait_for_evictions(number + 1, timeout=120)
                vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=60)
            vm.run(f"sleep {SECONDS}", timeout=SECONDS + 30)
            assert reports(vm) == "", reports(vm)
            # One recording ends before the next begins, and its thread with it: several looks.
            threads = vm.run("daemon=$(systemctl show -P MainPID headroomd); for look in $(seq 40); do ps -L -o comm= -p $daemon; sleep 0.25; done",
                             check=True).out.split()
            expected = {"hr-" + name for name in ("kill", "release", "sentinel", "slices", "cpus", "oom", "statvfs", "files", "http", "health",
                                                  "dbus", "audit", "status", "log", "recording", "disks", "forecast", "limits", "reclaim", "cold",
                                                  "burst", "suppress", "swap")}
            assert expected <= set(threads), expected - set(threads)
        finally:
            vm.run(f"systemctl kill -s KILL {UNITS}; systemctl stop {UNITS}; rm -f /run/manifest; "
                   "rmdir /sys/fs/cgroup/headroom-test-*; true", timeout=60)
        vm.run(f"systemctl stop headroomd.service; cp -a {LOG}.* /var/tmp/ 2>/dev/null; true", timeout=90)
        result = vm.run("systemctl show -P Result headroomd.service; systemctl show -P NRestarts headroomd.service", check=True).out
        assert result.split() == ["success", "0"], result
        assert reports(vm) == "", reports(vm)
        assert node.kernel_oom_kills() == 0
