# SPDX-License-Identifier: Apache-2.0
"""A victim whose memory another process copies while it dies, by a clock that counts instructions."""

from node import Node, Pod, kubelet_configuration
from starved import holds

COUNTED = True
KERNELS = ("6.12",)
MEMORY = "2G"
METRICS_PORT = 9750
MIB = 1 << 20

# In the guest: copies the largest mapping of a process over and over; for so long the kernel keeps its memory.
READER = """
import ctypes, re, sys
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
pid, chunk = int(sys.argv[1]), 8 << 20
ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in open(f"/proc/{pid}/maps")]
start, end = max(ranges, key=lambda each: each[1] - each[0])
count = (end - start) // chunk
buffer = ctypes.create_string_buffer(chunk)
local = (Iovec * count)(*[Iovec(ctypes.addressof(buffer), chunk)] * count)
remote = (Iovec * 1)(Iovec(start, count * chunk))
while libc.process_vm_readv(pid, local, count, remote, 1, 0) > 0:
    pass
"""


def test_what_a_reader_of_its_memory_keeps_is_waited_for(vm):
    """A debugger or a profiler copies a pod's memory when the pod is killed: the pod's cgroup is empty at once, and its memory
    comes back when the copy is done."""
    with Node(vm, replayed=True) as node:
        vm.put(READER.encode(), "/run/reader.py")
        node.start(kubelet_configuration(hard="300Mi"))
        copied = node.run_pod(Pod("copied", priority=-10), "--hold 900M")
        others = [node.run_pod(Pod("cron"), "--hold 30M"), node.run_pod(Pod("job"), "--hold 20M")]
        for pod, mebibytes in zip([copied, *others], (899, 29, 19)):
            holds(node, pod, mebibytes)
        vm.spawn(f"/opt/headroom/bin/python3 /run/reader.py $(cat {copied.cgroup}/{copied.unit}/cgroup.procs)",
                 unit="headroom-test-reader.service")
        try:
            vm.wait_until("pgrep -f /run/reader.py")
            others.append(node.run_pod(Pod("bank", "burstable", {"memory": "1500Mi"}), f"--hold {node.holding_to_leave(280)}M"))
            record = node.wait_for_evictions(1)[0]
            vm.run("sleep 3")
            names = [each["pod"]["name"] for each in node.evictions()]
            print(f"    empty after {record['latency']['kill_to_exit_ms']} ms, {record['memory_returned'] / MIB:.0f} MiB came back")
            assert names == ["copied"], names
            assert all(node.alive(pod) for pod in others) and node.kernel_oom_kills() == 0
        finally:
            vm.run("systemctl stop headroom-test-reader.service")
