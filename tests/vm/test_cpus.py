# SPDX-License-Identifier: Apache-2.0
"""CPU pinning on two sockets and two NUMA nodes with SMT: what may run where, as the kernel alone sees it.

The watcher below reads what each process may run on (Cpus_allowed_list) and the state file; it shares no code with
headroomd.
"""

import json
import random
import re
import time

from enabled_service import enabled_service
from held_change import kill_without_another, restart_again
from node import Node, Pod, kubelet_configuration

CORE = True
KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
CPUS = 8
TOPOLOGY = "sockets=2,cores=2,threads=2"
NUMA = 2
DEVICE_NODE = 1
METRICS_PORT = 9750

STATE = "/var/lib/headroom/cpu_manager_state"
ALL = set(range(8))

# A line for each process of a pod: its cgroup and what it may run on; then the state file.
WATCH = f"""
find /sys/fs/cgroup/kubepods.slice -name cgroup.procs | while read -r procs; do
    while read -r pid; do
        echo "$procs $(grep Cpus_allowed_list "/proc/$pid/status")"
    done < "$procs"
done 2>/dev/null
echo; cat {STATE} 2>/dev/null || true"""


def cpus(text):
    found = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def watch(vm):
    """uid → what each of its processes may run on; uid → its exclusive CPUs by the file; the shared pool."""
    lines, _, state = ("\n" + vm.run(WATCH, check=True).out).partition("\n\n")
    seen = {}
    for line in lines.splitlines():
        found = re.search(r"-pod([^/]*)\.slice.*Cpus_allowed_list:\s*(\S*)", line)
        if found:
            seen.setdefault(found[1].replace("_", "-"), []).append(cpus(found[2]))
    try:
        state = json.loads(state)
    except ValueError:
        state = {}
    entries = {uid: set().union(*(cpus(text) for text in containers.values()))
               for uid, containers in state.get("entries", {}).items()}
    return seen, entries, cpus(state.get("defaultCpuSet"))


def faults(seen, entries, shared, never_two=True):
    """What is wrong with it, in words."""
    wrong = []
    for uid, lists in seen.items():
        for allowed in lists:
            if not allowed:
                wrong.append(f"{uid} may run nowhere")
            if allowed != entries.get(uid, shared):
                wrong.append(f"{uid} runs on {sorted(allowed)} and not on {sorted(entries.get(uid, shared))}")
    owners = {}
    for uid, own in entries.items():
        for cpu in own:
            if cpu in owners:
                wrong.append(f"CPU {cpu} is {uid}'s and {owners[cpu]}'s")
            owners[cpu] = uid
    if shared & set(owners):
        wrong.append(f"shared and owned: {sorted(shared & set(owners))}")
    return wrong


def settled(vm, timeout=5.0):
    """Waits until nothing is wrong; how long it took."""
    began = time.monotonic()
    while True:
        state = watch(vm)
        wrong = faults(*state)
        if not wrong:
            return time.monotonic() - began, state
        assert time.monotonic() - began < timeout, wrong
        time.sleep(0.1)


def configuration(mode="enforce", options=None, **cpus):
    config = json.loads(kubelet_configuration(hard="50Mi", cpus={"mode": mode, **cpus}))
    config |= {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": options or {},
               "topologyManagerPolicy": "best-effort"}
    return json.dumps(config)


def whole(name, count):
    """A Guaranteed pod that wants so many CPUs for itself."""
    amount = {"cpu": str(count), "memory": "32Mi"}
    return Pod(name, "guaranteed", amount, amount)


def end(node, pod):
    node.vm.run(f"rm -f /etc/headroom/manifests/{pod.name}.yaml; systemctl stop {pod.unit} {pod.slice}; "
                f"systemctl reset-failed {pod.unit} 2>/dev/null; true", check=True)
    node.pods.remove(pod)


def sleep_in(node, pod, *properties):
    return node.run_script(pod, "exec sleep 600", *properties)


def test_the_map_shows_the_machine(vm):
    with Node(vm) as node:
        node.start(configuration(mode="observe"))
        answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
        assert answer["mode"] == "observe" and len(answer["cpus"]) == 8, answer
        assert {cpu["socket"] for cpu in answer["cpus"]} == {0, 1} == {cpu["numa"] for cpu in answer["cpus"]}, answer
        # Older kernels take the emulated threads for cores: what the kernel says, counts.
        cores = vm.run("cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | sort -u | wc -l", check=True).out
        assert len({cpu["core"] for cpu in answer["cpus"]}) == int(cores), answer


def test_observe_writes_nothing(vm):
    with Node(vm) as node:
        node.start(configuration(mode="observe"))
        pod = sleep_in(node, whole("quiet", 2))
        vm.wait_until("headroomctl cpus --json | grep -q '\"requested\":2'")
        seen, _, _ = watch(vm)
        assert seen[pod.uid] == [ALL], seen
        assert vm.run(f"test -e {STATE}").code != 0


def test_pods_come_and_go_and_no_cpu_has_two_owners(vm):
    with Node(vm) as node:
        node.start(configuration())
        dice = random.Random(11)
        web = sleep_in(node, Pod("web", "burstable", {"cpu": "100m"}))
        running, longest, born = [], 0.0, 0
        for step in range(24):
            if running and (dice.random() < 0.4 or len(running) > 4):
                end(node, running.pop(dice.randrange(len(running))))
            else:
                born += 1
                running.append(sleep_in(node, whole(f"own-{born}", dice.choice([1, 2, 2, 3]))))
            took, (seen, entries, shared) = settled(vm)
            longest = max(longest, took)
            assert seen[web.uid] == [shared] and 0 in shared, (seen, shared)
            wanted = {pod.uid: int(pod.requests["cpu"]) for pod in running}
            for uid, own in entries.items():
                assert len(own) == wanted[uid], (uid, own, wanted)
        metrics = node.metrics()
        exclusive = sum(len(own) for own in entries.values())
        assert f"kubelet_cpu_manager_exclusive_cpu_allocation_count {exclusive}" in metrics, metrics
        assert f'headroom_container_exclusive_cpus{{namespace="default"' in metrics or not entries
        print(vm.run("headroomctl cpus", check=True).out)
        print(f"    {born} pods in {step + 1} steps; longest until all was as in the file {longest:.2f} s "
              "(watcher's round trip included)")
        # Of those that are gone nothing is left with systemd: a setting for each that is there, and the tier's.
        vm.wait_until(f"[ $(ls /run/systemd/system.control | grep -c pod) -eq {len(running) + 1} ]", timeout=5)


def test_a_killed_daemon_and_a_lost_or_damaged_file_cost_no_pod_its_cpus(vm):
    with Node(vm) as node:
        node.start(configuration())
        for name, count in (("a", 2), ("b", 1), ("c", 2)):
            sleep_in(node, whole(name, count))
        _, before = settled(vm)
        for what, damage in (("killed", "true"), ("lost", f"rm {STATE}"),
                             ("cut short", f"truncate -s 40 {STATE}"),
                             ("swapped", f"sed -i 's/defaultCpuSet/default/' {STATE}")):
            vm.run(f"systemctl stop headroomd.service; systemctl reset-failed headroomd.service; {damage}; "
                   "systemctl start headroomd.service" if what != "killed" else
                   "systemctl kill -s KILL headroomd.service; sleep 1.5; systemctl start headroomd.service", check=True)
            _, after = settled(vm)
            assert after == before, (what, before, after)
        assert vm.run(f"test -e {STATE}.damaged").code == 0
        journal = node.journal()
        assert "taken from the cgroups" in journal, journal


def is_started_on_all_cpus(vm, service, pod):
    vm.wait_until(f"[ ! -e /run/systemd/system.control/{pod.slice}.d ]", timeout=10)
    vm.run(f"systemctl start {service}", check=True)
    vm.wait_until(f"grep -q 'Cpus_allowed_list:.*{text(ALL)}' /proc/$(systemctl show -P MainPID {service})/status", timeout=5)
    assert vm.run(f"systemctl show -P AllowedCPUs {pod.slice} {service}", check=True).out.strip() == ""
    vm.run(f"systemctl stop {service} {pod.slice}", check=True)


def test_a_unit_that_stays_loaded_is_started_again_without_our_cpus(vm):
    pod = whole("again", 2)
    with Node(vm) as node, enabled_service(vm, pod.slice) as service:
        node.start(configuration())
        sleep_in(node, pod)
        _, (_, entries, _) = settled(vm)
        assert len(entries[pod.uid]) == 2, entries
        # Stopped while no daemon runs.
        kill_without_another(node)
        vm.run(f"systemctl stop {pod.slice}", check=True)
        assert "AllowedCPUs" in vm.run("headroomctl changes", check=True).out
        vm.run("headroomd --restore", check=True)
        assert vm.run("headroomctl changes", check=True).out.startswith("headroomd has changed nothing")
        is_started_on_all_cpus(vm, service, pod)
        # Stopped when CPUs are no longer assigned: until then it would be started on its own again.
        restart_again(node)
        node.pods.remove(pod)
        vm.run("systemctl reset-failed headroomd.service; systemctl start headroomd.service", check=True)
        sleep_in(node, pod)
        settled(vm)
        vm.run(f"systemctl stop {pod.slice}", check=True)
        vm.run(f"sleep 1; test -e /run/systemd/system.control/{pod.slice}.d", check=True)
        node.configure(configuration().replace('"static"', '"none"'))
        vm.run("systemctl reload headroomd.service", check=True)
        is_started_on_all_cpus(vm, service, pod)


def test_what_others_change_is_put_back(vm):
    with Node(vm) as node:
        node.start(configuration())
        pod = sleep_in(node, whole("keep", 2))
        _, (_, entries, _) = settled(vm)
        own = entries[pod.uid]
        times = {}
        for what, change in (
                ("daemon-reload", "systemctl daemon-reload"),
                ("set-property", f"systemctl set-property --runtime {pod.slice} AllowedCPUs=0-7"),
                ("a write", f"echo 0-7 > {pod.cgroup}/cpuset.cpus"),
                ("a restart", f"systemctl restart {pod.unit}")):
            # Timed inside the guest: until the task may run on its own CPUs alone again, twice in a row.
            script = f"""{change}
                began=$(date +%s%3N) good=0
                until [ $good -ge 2 ] || [ $(($(date +%s%3N) - began)) -gt 10000 ]; do
                    pid=$(head -1 {pod.cgroup}/{pod.unit}/cgroup.procs)
                    if grep -q "^Cpus_allowed_list:[[:space:]]{text(own)}$" "/proc/$pid/status"; then
                        good=$((good + 1))
                    else good=0; fi
                    sleep 0.02
                done 2>/dev/null
                echo $(($(date +%s%3N) - began))"""
            took = int(vm.run(script, check=True).out.split()[-1]) / 1000
            times[what] = took
            assert took < 1.0, times
        print("    pinned back after " + ", ".join(f"{what} {took:.3f} s" for what, took in times.items()))


def test_a_cpu_that_is_unplugged_is_replaced(vm):
    with Node(vm) as node:
        node.start(configuration())
        pod = sleep_in(node, whole("two", 2))
        _, (_, entries, _) = settled(vm)
        lost = max(entries[pod.uid])
        switch = f"/sys/devices/system/cpu/cpu{lost}/online"
        try:
            vm.run(f"echo 0 > {switch}", check=True)
            wait_for_offline(vm, lost)
            took, (_, entries, shared) = settled(vm)
            assert len(entries[pod.uid]) == 2 and lost not in entries[pod.uid] | shared, (entries, shared)
            answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
            assert answer["offline"] == str(lost), answer
        finally:
            vm.run(f"echo 1 > {switch}", check=True)
        wait_for_offline(vm, "")
        _, (_, entries, shared) = settled(vm)
        assert lost in shared and len(entries[pod.uid]) == 2, (entries, shared)


def test_what_is_in_pieces_is_put_together_on_demand(vm):
    with Node(vm) as node:
        node.start(configuration())
        # Of six pods every second ends; one comes that must take what they leave, on both nodes; two more end.
        small = []
        for i in range(6):
            small.append(sleep_in(node, whole(f"small-{i}", 1)))
            settled(vm)
        for pod in small[1::2]:
            end(node, pod)
        settled(vm)
        large = sleep_in(node, whole("large", 4))
        vm.wait_until("headroomctl cpus --json | grep -q '\"pod\":\"large\"'")
        settled(vm)
        for pod in small[0], small[2]:
            end(node, pod)
            vm.wait_until(f"! grep -q {pod.uid} {STATE}", timeout=5)
        _, (_, before, _) = settled(vm)
        assert set(before) == {small[4].uid, large.uid}, before
        plan = json.loads(vm.run("headroomctl cpus repack --dry-run --json", check=True).out)
        assert plan["dry_run"] and plan["moved_cpus"] > 0, plan
        assert settled(vm)[1][1] == before, "a dry run moves nothing"
        figures_line = vm.run("headroomctl cpus repack", check=True).out
        print("    " + figures_line.replace("\n", "\n    "))
        _, (_, after, shared) = settled(vm)
        moved = sum(len(after[uid] - before[uid]) for uid in before)
        assert moved == plan["moved_cpus"] and {uid: len(own) for uid, own in after.items()} == \
            {uid: len(own) for uid, own in before.items()}, (before, after)
        for one in plan["containers"]:
            assert cpus(one["from"]) == before[one["uid"]] and cpus(one["to"]) == after[one["uid"]], (one, after)
        assert plan["before"]["numa_nodes"] == 3 and plan["after"]["numa_nodes"] == 2, plan
        assert after[large.uid] == {4, 5, 6, 7}, after
        again = json.loads(vm.run("headroomctl cpus repack --json", check=True).out)
        assert again["containers"] == [] and again["moved_cpus"] == 0, again
        unprivileged = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        assert vm.run(f"{unprivileged} headroomctl cpus repack --dry-run").code == 1, "it is for root"


def partition(vm, pod):
    answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
    return [one["partition"] for one in answer["containers"] if one["uid"] == pod.uid]


def test_pods_with_cpus_of_their_own_are_isolated_where_the_kernel_can(vm):
    with Node(vm) as node:
        node.start(configuration(partition="isolated"))
        first, second = sleep_in(node, whole("first", 2)), sleep_in(node, whole("second", 1))
        for pod in first, second:
            vm.wait_until(f"headroomctl cpus --json | grep -q '\"pod\":\"{pod.name}\"'")
        _, (_, before, _) = settled(vm)
        if vm.run(f"test -e {first.cgroup}/cpuset.cpus.exclusive").code != 0:  # before Linux 6.7
            said = partition(vm, first)
            assert said == ["isolated invalid (Parent is not a partition root)"], said
            assert read(vm, f"{first.cgroup}/cpuset.cpus.partition") == "member"
            print(f"    {said[0]}")
            return
        own = before[first.uid] | before[second.uid]
        wait_for_isolated(vm, own)
        vm.wait_until("[ $(headroomctl cpus --json | grep -o '\"partition\":\"isolated\"' | wc -l) -eq 2 ]", timeout=5)
        others = cpus(read(vm, "/sys/fs/cgroup/system.slice/cpuset.cpus.effective"))
        assert others == ALL - own, "nothing else on the machine runs there"
        vm.run("systemctl kill -s KILL headroomd.service; sleep 1.5; systemctl start headroomd.service", check=True)
        _, (_, after, _) = settled(vm)
        assert after == before, (before, after)
        wait_for_isolated(vm, own)
        end(node, second)
        wait_for_isolated(vm, before[first.uid])
        settled(vm)
        third = sleep_in(node, whole("third", 4))
        vm.wait_until(f"[ $(cat {third.cgroup}/cpuset.cpus.partition) = isolated ]", timeout=5)
        _, (_, after, _) = settled(vm)
        assert after[first.uid] == before[first.uid], after
        wait_for_isolated(vm, after[first.uid] | after[third.uid])
        node.configure(configuration())
        vm.run("systemctl reload headroomd.service", check=True)
        wait_for_isolated(vm, set())
        _, (_, back, _) = settled(vm)
        assert back == after and read(vm, "/sys/fs/cgroup/kubepods.slice/cpuset.cpus.exclusive") == "", back
        assert cpus(read(vm, "/sys/fs/cgroup/system.slice/cpuset.cpus.effective")) == ALL


def wait_for_isolated(vm, own):
    vm.wait_until(f'[ "$(cat /sys/fs/cgroup/cpuset.cpus.isolated)" = "{text(own)}" ]', timeout=5)


def read(vm, file):
    return vm.run(f"cat {file}", check=True).out.strip()


def test_a_pod_that_names_a_device_runs_beside_it(vm):
    device = vm.run("cd /sys/bus/pci/devices && grep -lx 1 */numa_node | head -1 | cut -d/ -f1", check=True).out.strip()
    assert device, "no PCI device is on node 1"
    with Node(vm) as node:
        node.start(configuration())
        apart, beside = whole("apart", 1), whole("beside", 1)
        beside.annotations = {"headroom.io/near-devices": device}
        lost = whole("lost", 1)
        lost.annotations = {"headroom.io/near-devices": "0000:ff:1f.7"}
        for pod in apart, beside, lost:
            sleep_in(node, pod)
            vm.wait_until(f"headroomctl cpus --json | grep -q '\"pod\":\"{pod.name}\"'")
        _, (_, entries, _) = settled(vm)
        assert entries[apart.uid] < {1, 2, 3} and entries[beside.uid] < {4, 5, 6, 7}, (device, entries)
        assert len(entries[lost.uid]) == 1 and "no PCI device 0000:ff:1f.7 with a known NUMA node" in node.journal()
        print(f"    {device} is on node 1: beside it CPU {text(entries[beside.uid])}, else CPU {text(entries[apart.uid])}")


# Of the unit's cgroup and its tasks, over some seconds: periods, throttled ones, CPU time, time ready but waiting, moves.
LOAD_FIGURES = """cd {cgroup}
each() {{ for pid in $(cat cgroup.procs); do cat "/proc/$pid/$1"; done; }}
awk '/^nr_periods|^nr_throttled|^throttled_usec|^usage_usec/ {{ printf "%s=%d ", $1, $2 }}' cpu.stat
each schedstat | awk '{{ n += $2 }} END {{ printf "delay_ns=%d ", n }}'
each sched | awk '/^se.nr_migrations/ {{ n += $3 }} END {{ printf "moves=%d", n }}'"""


def load_figures(vm, pod, seconds=6):
    def look():
        out = vm.run(LOAD_FIGURES.format(cgroup=f"{pod.cgroup}/{pod.unit}"), check=True).out
        return {name: int(value) for name, value in (word.split("=") for word in out.split())}
    before = look()
    time.sleep(seconds)
    return {name: value - before[name] for name, value in look().items()}


def figures_line(figures):
    return (f"throttled in {figures['nr_throttled']} of {figures['nr_periods']} periods for "
            f"{figures['throttled_usec'] / 1e6:.2f} s, ready but waiting "
            f"{figures['delay_ns'] / 1e9:.2f} s, moved {figures['moves']} times, {figures['usage_usec'] / 1e6:.2f} s of CPU")


def test_a_load_with_more_threads_than_cpus_is_throttled_no_more_once_pinned(vm):
    with Node(vm) as node:
        node.start(configuration(mode="observe"))
        burn = "for i in 1 2 3 4; do (while :; do :; done) & done; wait"
        load = node.run_script(whole("load", 2), burn, "CPUQuota=200%")
        node.run_script(Pod("noise", "burstable", {"cpu": "100m"}), burn)
        vm.wait_until("headroomctl cpus --json | grep -q '\"requested\":2'")
        before = load_figures(vm, load)
        node.configure(configuration())
        vm.run("systemctl reload headroomd.service", check=True)
        settled(vm)
        after = load_figures(vm, load)
        print(f"    anywhere: {figures_line(before)}\n    pinned:   {figures_line(after)}")
        # At a quota of just what its CPUs give it is stopped at the end of a period, but not for long.
        assert before["nr_throttled"] > before["nr_periods"] / 2, before
        assert after["throttled_usec"] < before["throttled_usec"] / 4, (before, after)


def wait_for_offline(vm, cpus):
    vm.wait_until("headroomctl cpus --json | grep -q '\"offline\":\"%s\"'" % cpus, timeout=5)


def text(own):
    """As the kernel writes it."""
    parts, ordered = [], sorted(own)
    while ordered:
        last = ordered[0]
        while last + 1 in own:
            last += 1
        parts.append(str(ordered[0]) if last == ordered[0] else f"{ordered[0]}-{last}")
        ordered = [cpu for cpu in ordered if cpu > last]
    return ",".join(parts)
