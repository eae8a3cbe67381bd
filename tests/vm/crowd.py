# SPDX-License-Identifier: Apache-2.0
"""Many pods that do nothing, and what a daemon that watches them costs.

A pod is a cgroup with two containers and one sleeping process: three cgroups.
"""

CGROUPS_OF_A_POD = 3
MAKE_PODS = """
    echo 65536 > /proc/sys/kernel/pid_max
    cd /sys/fs/cgroup; mkdir -p kubepods.slice
    for controller in cpu memory io pids; do
        echo +$controller > cgroup.subtree_control; echo +$controller > kubepods.slice/cgroup.subtree_control; done
    for pod in $(seq {first} {last}); do
        slice=$(printf 'kubepods.slice/kubepods-pod%08x_1111_2222_3333_444444444444.slice' $pod)
        mkdir $slice; echo '+cpu +memory +io +pids' > $slice/cgroup.subtree_control
        mkdir $slice/one.scope $slice/two.scope
        ( echo 0 > $slice/one.scope/cgroup.procs; exec setsid sleep infinity ) > /dev/null 2>&1 &
    done; true
"""


def make_pods(vm, last: int, first: int = 1) -> None:
    """Pods FIRST to LAST."""
    for start in range(first, last + 1, 250):  # a command has a time limit
        vm.run(MAKE_PODS.format(first=start, last=min(last, start + 249)), timeout=240, check=True)


def remove_pods(vm, last: int, first: int = 1) -> None:
    vm.run(f"""cd /sys/fs/cgroup/kubepods.slice
        for pod in $(seq {first} {last}); do
            slice=$(printf 'kubepods-pod%08x_1111_2222_3333_444444444444.slice' $pod)
            echo 1 > $slice/cgroup.kill
            until rmdir $slice/*.scope $slice 2>/dev/null || ! [ -d $slice ]; do sleep 0.05; done
        done""", timeout=240, check=True)


class Daemon:
    """The main process of a unit, and what it has used."""

    def __init__(self, vm, unit: str = "headroomd"):
        self.vm = vm
        self.pid = vm.run(f"systemctl show -p MainPID --value {unit}", check=True).out.strip()

    def thread_seconds(self) -> dict[str, float]:
        lines = self.vm.run(f"cd /proc/{self.pid}/task; for id in *; do echo $(cut -d' ' -f1 $id/schedstat) $(cat $id/comm); "
                            "done", check=True).out.splitlines()
        spent = {}
        for nanoseconds, name in (line.split(" ", 1) for line in lines):
            spent[name] = spent.get(name, 0) + int(nanoseconds) / 1e9
        return spent

    def uptime(self) -> float:
        """The guest's own clock: where instructions are counted it is not ours."""
        return float(self.vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)

    def rss_mib(self) -> float:
        return int(self.vm.run(f"awk '/^VmRSS:/{{print $2}}' /proc/{self.pid}/status", check=True).out) / 1024


class Spent:
    """What a daemon uses of CPU time from now on."""

    def __init__(self, daemon: Daemon):
        self.daemon, self.at_first, self.since = daemon, daemon.thread_seconds(), daemon.uptime()

    def seconds(self) -> float:
        return self.daemon.uptime() - self.since

    def by_thread(self) -> dict[str, float]:
        return {name: spent - self.at_first.get(name, 0) for name, spent in self.daemon.thread_seconds().items()}

    def cpu_seconds(self) -> float:
        return sum(self.by_thread().values())

    def cpu_percent(self) -> float:
        """As a share of one CPU."""
        return 100 * self.cpu_seconds() / self.seconds()

    def beyond(self, idle: float) -> float:
        """CPU seconds above what it uses in any case, as a share of one CPU."""
        return max(0.0, self.cpu_seconds() - idle * self.seconds())
