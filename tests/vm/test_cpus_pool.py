# SPDX-License-Identifier: Apache-2.0
"""The shared pool: kept as large as its pods requested; let into a pod for an init container; left at once by who ran
on CPUs that are given away. And a resize in place."""

import json

from test_cpus import (ALL, CPUS, MEMORY, NUMA, TOPOLOGY, configuration, cpus, end, read, settled,  # noqa: F401
                       sleep_in, text, watch, whole)
from node import ETC, Node, Pod

KERNELS = ("6.12",)
PATIENT = True


def pool(vm):
    return json.loads(vm.run("headroomctl cpus --json", check=True).out)["shared_pool"]


def wait_for_pool(vm, size, requested):
    vm.wait_until(f"headroomctl cpus --json | grep -q '\"size_millicores\":{size},\"requested_millicores\":{requested},'",
                  timeout=5)


def test_a_pod_that_would_leave_the_pool_short_is_refused(vm):
    with Node(vm) as node:
        node.start(configuration())
        web = sleep_in(node, Pod("web", "burstable", {"cpu": "3500m"}))
        wait_for_pool(vm, 7000, 3500)
        big = sleep_in(node, whole("big", 4))
        vm.wait_until("headroomctl cpus --json | grep -q SharedPoolError", timeout=5)
        _, (seen, entries, shared) = settled(vm)
        assert entries == {} and seen[big.uid] == [shared] == [ALL], (seen, entries, shared)
        drawn = vm.run("headroomctl cpus", check=True).out
        print("    " + drawn.splitlines()[1] + "\n    " + drawn.splitlines()[-1].strip())
        assert "the shared pool would be left with = 3, its pods requested = 3500m" in drawn, drawn
        assert "headroom_shared_pool_refusals_total 1" in node.metrics()
        small = sleep_in(node, whole("small", 1))
        vm.wait_until("headroomctl cpus --json | grep -q '\"pod\":\"small\"'", timeout=5)
        assert small.uid not in settled(vm)[1][1], "big shares as well, and requested four"
        end(node, small)

        # A pod that nothing holds back any more is served; the next finds the pool short, and that is reported.
        end(node, web)
        wait_for_pool(vm, 3000, 0)
        own = settled(vm)[1][1][big.uid]
        assert len(own) == 4, own
        web = sleep_in(node, web)
        wait_for_pool(vm, 3000, 3500)
        assert settled(vm)[1][1] == {big.uid: own}
        assert "error: the shared pool has fewer CPUs" in vm.run("headroomctl cpus", check=True).out
        assert "the shared pool has 3 CPUs for pods that requested 3500m" in node.journal()

        # What is unplugged of it is not replaced from there.
        lost = max(own)
        switch = f"/sys/devices/system/cpu/cpu{lost}/online"
        try:
            vm.run(f"echo 0 > {switch}", check=True)
            vm.wait_until(f"headroomctl cpus --json | grep -q '\"offline\":\"{lost}\"'", timeout=5)
            assert settled(vm)[1][1] == {big.uid: own - {lost}}
        finally:
            vm.run(f"echo 1 > {switch}", check=True)
        vm.wait_until("headroomctl cpus --json | grep -q '\"offline\":\"\"'", timeout=5)
        node.configure(configuration(guardSharedPool=False))
        vm.run("systemctl reload headroomd.service", check=True)
        vm.wait_until("headroomctl cpus --json | grep -q '\"enforced\":false'", timeout=5)
        wait_for_pool(vm, 3000, 3500)
        assert len(settled(vm)[1][1][big.uid]) == 4, "unguarded it has them all again"


class Starting(Pod):
    """Its init container asks for half a CPU, its app for two."""

    def manifest(self) -> str:
        pod = json.loads(super().manifest())
        half = {"cpu": "500m", "memory": "32Mi"}
        pod["spec"]["initContainers"] = [
            {"name": "prep", "image": "workload", "resources": {"requests": half, "limits": half}}]
        return json.dumps(pod, indent=1)


def run_container(node, pod, name):
    """As it is recognised: a unit that is named by its container."""
    unit = f"headroom-test-{pod.name}-{name}.service"
    node.vm.spawn("exec sleep 600", unit=unit, slice=pod.slice)
    return f"{pod.cgroup}/{unit}", unit


def allowed(vm, cgroup):
    return cpus(vm.run(f"grep -h Cpus_allowed_list /proc/$(head -1 {cgroup}/cgroup.procs)/status",
                       check=True).out.split()[1])


def test_an_init_container_that_shares_runs_in_the_pool(vm):
    with Node(vm) as node:
        node.start(configuration())
        other = sleep_in(node, whole("other", 2))
        own_of_other = settled(vm)[1][1][other.uid]
        amounts = {"cpu": "2", "memory": "32Mi"}
        pod = Starting("starting", "guaranteed", amounts, amounts)
        vm.put(pod.manifest().encode(), f"{ETC}/manifests/{pod.name}.yaml")
        prep, prep_unit = run_container(node, pod, "prep")
        try:
            vm.wait_until("grep -q %s /var/lib/headroom/cpu_manager_state" % pod.uid, timeout=5)
            _, entries, shared = watch(vm)
            own = entries[pod.uid]
            vm.wait_until(f'[ "$(cat {prep}/cpuset.cpus.effective)" = "{text(shared)}" ]', timeout=5)
            assert allowed(vm, prep) == shared and not shared & (own | own_of_other), (shared, own, own_of_other)
            assert cpus(read(vm, f"{pod.cgroup}/cpuset.cpus.effective")) == shared | own
            main, main_unit = run_container(node, pod, "main")
            vm.wait_until(f'[ "$(cat {main}/cpuset.cpus.effective)" = "{text(own)}" ]', timeout=5)
            assert allowed(vm, main) == own and allowed(vm, prep) == shared, "beside it, as a restart would have it"
            vm.stop(prep_unit)
            vm.wait_until(f'[ "$(cat {pod.cgroup}/cpuset.cpus.effective)" = "{text(own)}" ]', timeout=5)
            assert allowed(vm, main) == own
            answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
            assert answer["failed"] == 0, answer
        finally:
            vm.run(f"systemctl stop headroom-test-{pod.name}-prep.service headroom-test-{pod.name}-main.service "
                   f"{pod.slice}; rm -f {ETC}/manifests/{pod.name}.yaml; true")


# Waits for the tier to lose CPUs; then, for two seconds, on which of those its tasks run: prints how long after the loss
# one was last seen there (-1: none was), and the number of looks.
OFF_AT_ONCE = r"""awk -v tier=/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice -v procs=%s '
    function line_of(file,    line) { line = ""; getline line < file; close(file); return line }
    function now(    words) { split(line_of("/proc/uptime"), words); return words[1] }
    function expand(list, set,    parts, ends, i, cpu) {
        split("", set)
        for (i = split(list, parts, ","); i > 0; i--) {
            if (split(parts[i], ends, "-") == 1) ends[2] = ends[1]
            for (cpu = ends[1] + 0; cpu <= ends[2] + 0; cpu++) set[cpu] = 1
        }
    }
    BEGIN {
        while ((getline pid < procs) > 0) pids[pid]
        print "ready" > "/run/ready"; close("/run/ready")
        before = after = line_of(tier "/cpuset.cpus.effective")
        while (after == before) after = line_of(tier "/cpuset.cpus.effective")
        began = now(); last = -1
        expand(after, left)
        while ((at = now()) - began < 2) {
            for (pid in pids) {
                split(line_of("/proc/" pid "/stat"), words)
                if (words[3] == "R" && !(words[39] in left)) last = at - began
            }
            looks++
        }
        print last, looks
    }'"""


def test_tasks_that_run_on_cpus_given_away_are_off_them_at_once(vm):
    with Node(vm) as node:
        node.start(configuration())
        burn = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (while :; do :; done) & done; wait"
        noise = node.run_script(Pod("noise", "burstable", {"cpu": "100m"}), burn)
        vm.wait_until(f"[ $(wc -l < {noise.cgroup}/{noise.unit}/cgroup.procs) -eq 13 ]")
        _, (_, _, shared) = settled(vm)
        assert shared == ALL
        vm.run("rm -f /run/ready")
        looking = vm.start(OFF_AT_ONCE % f"{noise.cgroup}/{noise.unit}/cgroup.procs", timeout=60)
        vm.wait_until("[ -e /run/ready ]")
        sleep_in(node, whole("comes", 3))
        last, looks = (float(word) for word in looking.wait(check=True).out.split())
        print(f"    12 busy tasks on 8 CPUs, 3 given away: off them {'at once' if last < 0 else f'after {last:.2f} s'}, "
              f"by {looks:.0f} looks in 2 s")
        assert last < 0.1 and looks > 10, (last, looks)


def test_a_resize_in_place_keeps_what_stays_and_all_of_the_admission(vm):
    with Node(vm) as node:
        node.start(configuration())
        pod = sleep_in(node, whole("grows", 2))
        _, (_, entries, _) = settled(vm)
        sizes = [entries[pod.uid]]
        for count in ("3", "1", "2"):
            pod.requests["cpu"] = count  # and the limits: they are the same
            vm.put(pod.manifest().encode(), f"{ETC}/manifests/{pod.name}.yaml")
            vm.wait_until(f"headroomctl cpus --json | grep -q '\"requested\":{count}'", timeout=5)
            _, (_, entries, _) = settled(vm)
            sizes.append(entries[pod.uid])
        print("    " + " -> ".join(text(own) for own in sizes))
        assert [len(own) for own in sizes] == [2, 3, 2, 2], "never fewer than the two of its admission"
        for before, after in zip(sizes, sizes[1:]):
            assert before <= after or after <= before, sizes
