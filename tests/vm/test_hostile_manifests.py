# SPDX-License-Identifier: Apache-2.0
"""Manifests of one who means harm: the daemon's memory is locked, and limited by MemoryMax= of its unit."""

import json

from node import ETC, Node, Pod, kubelet_configuration

MEMORY = "2G"
MAX_BYTES = 512 << 20  # MemoryMax= of headroomd.service

# In the guest: manifests of nearly 1 MiB, four of each of the shapes that take most memory, and one that takes most to parse.
WRITE = """
import json, sys
directory = sys.argv[1]

def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": name}, "spec": {"containers": [{"name": "c"}], **spec}}

def write(name, what):
    with open(f"{directory}/{name}.json", "w") as file:
        json.dump(what, file, separators=(",", ":"))

write("0-numbers", [1] * 500_000)
for number in range(1, 5):
    write(f"{number}-containers", pod(f"containers-{number}", containers=[{"name": f"c{each}"} for each in range(50_000)]))
    write(f"{number}-pods", {"apiVersion": "v1", "kind": "PodList", "items": [pod(f"p-{number}-{each}") for each in range(9_000)]})
    write(f"{number}-strange", pod(f"strange-{number}", tolerations=[{"operator": "E"}] * 58_000))
"""


def service(vm, name):
    return int(vm.run(f"systemctl show -P {name} headroomd", check=True).out)


def test_they_do_not_exhaust_the_daemon(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        assert service(vm, "MemoryMax") == MAX_BYTES
        before = service(vm, "MainPID")
        vm.put(WRITE.encode(), "/run/write.py")
        for _ in range(3):  # changed files are read while the earlier ones are still in memory
            vm.run(f"rm -f {ETC}/manifests/*; /opt/headroom/bin/python3 /run/write.py {ETC}/manifests; sleep 20", timeout=300, check=True)
        vm.run(f"rm -f {ETC}/manifests/[1-4]-[ps]*", check=True)
        # Later than the thread rests after a long reading: it is described then.
        node.run_pod(Pod("hog", "burstable", {"memory": "50Mi"}), "--hold 1M --after 30 --until 4G")
        node.wait_for_evictions(1, timeout=120)
        peak = int(vm.run("cat /sys/fs/cgroup$(systemctl show -P ControlGroup headroomd)/memory.peak", check=True).out)
        record = node.evictions()[0]
        print(f"    highest {peak >> 20} MiB; decision to signal {record['latency']['decision_to_signal_ms']:.1f} ms")
        journal = node.journal()
        assert "more than 8 MiB in the directory" in journal, journal[-4000:]
        assert "3-strange.json: and 57900 more" in journal, journal[-4000:]
        assert service(vm, "MainPID") == before, journal[-4000:]
        assert peak < MAX_BYTES * 3 // 4, peak
        assert record["pod"]["name"] == "hog" and node.kernel_oom_kills() == 0, json.dumps(record)
