# SPDX-License-Identifier: Apache-2.0
"""Ten thousand clients that mean no good: the loop's turns and its kills do not notice."""

import re

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
PORT = 9750
SWEEPS = 'headroom_snapshots_total{scope="cgroups"}'
CROWD, SECONDS = 10_000, 30


def scraped(vm) -> str:
    """As Prometheus does it: who is turned away tries again."""
    return vm.run(f"curl -sSf --retry 20 --retry-all-errors --retry-delay 1 --max-time 20 http://127.0.0.1:{PORT}/metrics",
                  timeout=120, check=True).out


def value(page, series) -> float:
    return float(re.search(rf"^{re.escape(series)} (\S+)$", page, re.M)[1])


def open_files(vm, pid) -> int:
    return int(vm.run(f"ls /proc/{pid}/fd | wc -l", check=True).out)


def test_ten_thousand_hostile_clients_are_not_felt(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        pid = int(vm.run("systemctl show -P MainPID headroomd", check=True).out)
        files, before = open_files(vm, pid), scraped(vm)
        vm.run("rm -f /tmp/crowd")
        vm.spawn(f"exec /opt/headroom/bin/crowd {PORT} {CROWD} {SECONDS} >/tmp/crowd", unit="headroom-test-crowd.service")
        vm.run("sleep 8")
        scraped(vm)  # one who asks properly is answered
        node.run_pod(Pod("hog"), "--rate 200M --until 4G")
        record, = node.wait_for_evictions(1)
        vm.wait_until("test -s /tmp/crowd", timeout=SECONDS + 60)
        most, shut_out = (int(each) for each in vm.run("cat /tmp/crowd", check=True).out.split())
        after = scraped(vm)
        took = record["latency"]["crossing_to_decision_ms"] + record["latency"]["decision_to_signal_ms"]
        sweeps = value(after, SWEEPS) - value(before, SWEEPS)
        print(f"    {most} of {CROWD} connected, shut out {shut_out} times in {SECONDS} s; {sweeps:.0f} sweeps meanwhile; "
              f"crossing to SIGKILL {took:.1f} ms")
        assert most > 200 and shut_out > 200, (most, shut_out)
        assert record["pod"]["name"] == "hog" and took < 100, record
        assert sweeps >= SECONDS, "a sweep a second"
        assert value(after, "headroom_loop_stalls_total") == 0
        vm.wait_until(f"[ $(ls /proc/{pid}/fd | wc -l) -le {files + 32} ]", timeout=30)  # the pod is watched, too
