# SPDX-License-Identifier: Apache-2.0
"""Getting memory back: the frozen, the forking; many small ones; fillers together; a loop that hangs."""

import time

from node import Node, Pod, kubelet_configuration
from starved import holds

CORE = True
KERNELS = ("6.12",)
MEMORY = "3G"
METRICS_PORT = 9750
MIB = 1 << 20


def names(records):
    return [record["pod"]["name"] for record in records]


def test_limits_of_a_slice_that_outlives_the_kill_are_restored(vm):
    """The service is restarted in its slice: what was lifted for the kill is what it was before."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        victim = node.run_pod(Pod("again"), "--hold 400M", "Restart=always", "RestartSec=100ms")
        holds(node, victim, 390)
        # systemd gives the slice the cpu controller with them.
        vm.run(f"systemctl set-property --runtime {victim.slice} CPUQuota=90% CPUWeight=7", check=True)
        node.configure(kubelet_configuration(hard=f"{(node.memory_available() >> 20) + 100}Mi"))
        vm.run("systemctl reload headroomd.service", check=True)
        node.wait_for_evictions(1)
        node.configure(kubelet_configuration(hard="100Mi"))
        vm.run("systemctl reload headroomd.service", check=True)
        vm.wait_until("[ ! -e /run/headroom/lifted-limits.json ]", timeout=20)
        assert vm.run(f"cat {victim.cgroup}/cpu.max {victim.cgroup}/cpu.weight", check=True).out.split("\n")[:2] == [
            "90000 100000", "7"]


def test_small_pods_that_only_together_are_too_much_go_together(vm):
    """Thirty of 24 MiB: as many die as will do, at once, and not one more than that."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        bank = node.run_pod(Pod("bank", "guaranteed", {"memory": "64Mi", "cpu": "100m"},
                                {"memory": "64Mi", "cpu": "100m"}), "--hold 32M")
        pods = [node.run_pod(Pod(f"small-{i}"), "--hold 24M") for i in range(30)]
        for pod in pods:
            holds(node, pod, 23)
        node.configure(kubelet_configuration(hard=f"{(node.memory_available() >> 20) + 200}Mi"))
        vm.run("systemctl reload headroomd.service", check=True)
        node.wait_for_evictions(3)
        time.sleep(2)
        records = node.evictions()
        assert node.alive(bank) and "bank" not in names(records)
        # As the daemon saw it when it decided.
        missing = (records[0]["threshold"] - records[0]["available"]) >> 20
        least = missing / 26
        assert missing > 50 and least <= len(records) <= least + 4, (missing, names(records))
        decided = {record["boot_ns"] for record in records}
        print(f"    {missing} MiB missing: {len(records)} pods of 24 MiB in {len(decided)} rounds")
        assert len(decided) <= 3, decided
        assert node.kernel_oom_kills() == 0


def test_four_fillers_at_full_speed_and_no_swap(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi"))
        quiet = [node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M"),
                 node.run_pod(Pod("cron"), "--hold 8M")]
        holds(node, quiet[0], 99)
        fillers = [node.run_pod(Pod(f"filler-{i}"), "--hold 1M --after 2 --until 8G") for i in range(4)]
        deadline = time.monotonic() + 60
        while any(node.alive(pod) for pod in fillers) and time.monotonic() < deadline:
            time.sleep(0.5)
        records = node.evictions()
        assert sorted(names(records)) == [f"filler-{i}" for i in range(4)], names(records)
        assert all(node.alive(pod) for pod in quiet)
        assert node.kernel_oom_kills() == 0


def test_a_tmpfs_hog_gives_nothing_back_and_the_next_is_chosen(vm):
    with Node(vm) as node:
        vm.run("mkdir -p /mnt/shared && mount -t tmpfs -o size=2G tmpfs /mnt/shared", check=True)
        try:
            node.start(kubelet_configuration(hard="100Mi"))
            hog = node.run_script(Pod("tmpfs-hog"), "head -c 600M /dev/zero > /mnt/shared/file; exec sleep infinity")
            holds(node, hog, 599)
            node.run_pod(Pod("next"), "--hold 300M")
            node.vm.wait_until(f"[ $(cat {node.pods[-1].cgroup}/memory.current) -gt {299 * MIB} ]")
            web = node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
            holds(node, web, 99)
            node.configure(kubelet_configuration(hard=f"{(node.memory_available() >> 20) + 200}Mi"))
            vm.run("systemctl reload headroomd.service", check=True)
            records = node.wait_for_evictions(2)
            assert names(records) == ["tmpfs-hog", "next"], names(records)
            assert records[0]["memory_returned"] < 50 * MIB, records[0]
            assert node.alive(web)
            between = (records[1]["boot_ns"] - records[0]["instants_ns"]["ended"]) / 1e6
            print(f"    the next was chosen {between:.1f} ms after the hog was gone with its files left")
        finally:
            node.stop()
            vm.run("umount /mnt/shared")


def test_the_frozen_and_the_forking_die_as_well(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        frozen = node.run_pod(Pod("frozen"), "--hold 500M")
        holds(node, frozen, 499)
        vm.run(f"echo 1 > {frozen.cgroup}/cgroup.freeze; grep -q 'frozen 1' {frozen.cgroup}/cgroup.events", check=True)
        forking = node.run_script(Pod("forking"), "/opt/headroom/bin/workload --hold 300M & sleep 5; "
                                  "while :; do (sleep 1; sleep 1) & sleep 0.02; done", "TasksMax=200")
        holds(node, forking, 300)
        node.configure(kubelet_configuration(hard=f"{(node.memory_available() >> 20) + 600}Mi"))
        vm.run("systemctl reload headroomd.service", check=True)
        records = node.wait_for_evictions(2)
        assert sorted(names(records)) == ["forking", "frozen"], names(records)
        assert {record["outcome"] for record in records} == {"evicted"}, records
        assert not node.alive(frozen) and not node.alive(forking)


def test_the_sentinel_acts_while_the_loop_hangs(vm):
    """The loop's thread is held; memory runs out meanwhile, and the kernel's OOM killer stays quiet."""
    with Node(vm) as node:
        # systemd's own watchdog would end the daemon before the test is over.
        vm.run("printf '[Service]\\nWatchdogSec=120\\n' > /run/systemd/system/headroomd.service.d/patient.conf; "
               "systemctl daemon-reload; rm -f /run/go", check=True)
        node.start(kubelet_configuration(hard="300Mi"))
        web = node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
        holds(node, web, 99)
        hog = node.run_script(Pod("hog"), "until [ -e /run/go ]; do sleep 0.1; done; "
                              f"exec /opt/headroom/bin/workload --hold {node.holding_to_leave(900)}M --until 8G --rate 300M")
        time.sleep(7)  # the standing list is renewed every five seconds
        halt = vm.spawn("/opt/headroom/bin/halt $(systemctl show -P MainPID headroomd.service) 40")
        vm.run(f"until grep -q 't (tracing stop)' /proc/$(systemctl show -P MainPID headroomd.service)/status; do sleep 0.1; done; "
               "touch /run/go", check=True)
        node.vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=60)
        assert vm.run(f"systemctl is-active --quiet {halt}").code == 0, "the loop was no longer halted"
        assert node.kernel_oom_kills() == 0 and node.alive(web)
        vm.run(f"systemctl stop {halt}", check=True)
        record, = node.wait_for_evictions(1, timeout=30)
        assert record["pod"]["name"] == "hog", record
        assert node.metric("headroom_sentinel_kills_total") == 1 and node.metric("headroom_loop_stalls_total") >= 1
        # The loop turned again, and has nothing to add.
        time.sleep(2)
        assert len(node.evictions()) == 1 and node.alive(web)
