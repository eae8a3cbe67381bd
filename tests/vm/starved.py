# SPDX-License-Identifier: Apache-2.0
"""A victim that gets next to no CPU time for its exit: for test_release and bench-release."""

from node import Pod, kubelet_configuration

MIB = 1 << 20


def holds(node, pod, mebibytes: int) -> None:
    node.vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {mebibytes * MIB} ]", timeout=240)


def starve(node, number, mebibytes: int):
    """A pod of so much in small pages, and four of a thousand times its weight that keep every CPU busy."""
    victim = node.run_pod(Pod(f"starved-{number}"), f"--hold {mebibytes}M")
    holds(node, victim, mebibytes * 97 // 100)
    node.vm.run(f"echo 1 > {victim.cgroup}/cpu.weight; echo 1 > {victim.cgroup.rsplit('/', 1)[0]}/cpu.weight")
    busy = [node.run_script(Pod(f"busy-{number}-{i}", "guaranteed", {"cpu": "1"}, {"cpu": "1"}), "while :; do :; done",
                            "CPUWeight=1000") for i in range(4)]
    return victim, busy


# In the guest: kills a cgroup, and says after how many milliseconds nine tenths of its memory are back, or that so many have passed.
KILL = """
import sys, time
def held():
    try:
        with open(sys.argv[1] + "/memory.current") as file:
            return int(file.read())
    except OSError:
        return 0
tenth, began = held() / 10, time.monotonic()
with open(sys.argv[1] + "/cgroup.kill", "w") as kill:
    kill.write("1")
def passed():
    return 1000 * (time.monotonic() - began)
while held() > tenth and passed() < float(sys.argv[2]):
    time.sleep(0.01)
print(round(passed()))
"""


def kill_by_hand(node, victim, seconds: int = 30) -> int:
    """Milliseconds from SIGKILL until nine tenths are back, where nothing helps; it is not waited for longer than so many seconds."""
    return int(node.vm.run(f"/opt/headroom/bin/python3 -c '{KILL}' {victim.cgroup}/{victim.unit} {1000 * seconds}",
                           check=True, timeout=600).out)


def kill_starved_by_hand(node, number, mebibytes: int, seconds: int = 30) -> int:
    """As kill_by_hand(), beside what starves it."""
    victim, busy = starve(node, number, mebibytes)
    took = kill_by_hand(node, victim, seconds)
    for pod in (*busy, victim):
        node.forget(pod)
    return took


def reload_with(node, hard: str) -> None:
    node.configure(kubelet_configuration(hard=hard))
    node.vm.run("systemctl reload headroomd.service", check=True)


def evict_below(node, mebibytes: int, timeout: float = 60) -> dict:
    """The threshold is so much above what is available until a pod is evicted: the record of that."""
    known = len(node.evictions())
    reload_with(node, f"{(node.memory_available() >> 20) + mebibytes}Mi")
    record = node.measure_evictions(known + 1, timeout)[-1]
    reload_with(node, "100Mi")
    return record
