# SPDX-License-Identifier: Apache-2.0
"""Limits of local storage where the filesystem keeps project quotas, and where it does not.

What is unlinked and held open is on the disk and in no directory: a quota counts it and a walk cannot. So the victim
shows which of the two was asked.
"""

import json

from disk_node import ROOT, Disk, DiskNode, configuration, evicted
from node import Pod

KERNELS = ("6.1",)
PATIENT = True
MEMORY = "1G"
DISK = "1G"
METRICS_PORT = 9750

QUOTAS = Disk("quotas", "400M", features="project,quota", options="loop,prjquota")
HIDDEN = "exec 9> file; rm file; head -c 40M /dev/zero >&9; sync"
SEEN = "head -c 40M /dev/zero > file; sync"


def node_of(vm):
    return DiskNode(vm, QUOTAS)


def start(node):
    node.start(configuration({"memory.available": "20Mi"}, disk=node.paths(measurePeriod="1s")))


class TwoContainers(Pod):
    """Its containers have a limit each: of logs, for a pod has no other part that is one container's."""

    def manifest(self) -> str:
        pod = json.loads(super().manifest())
        pod["spec"]["containers"] = [{"name": name, "resources": {"limits": {"ephemeral-storage": limit}}}
                                     for name, limit in (("main", "30Mi"), ("roomy", "100Mi"))]
        return json.dumps(pod)


def test_a_size_limit_is_held_against_the_quota_and_by_walking_where_there_is_none(vm):
    with node_of(vm) as node:
        start(node)
        within = node.run_with_volume(Pod("within"), "head -c 20M /dev/zero > file", size_limit="30Mi", project=11)
        unseen = node.run_with_volume(Pod("unseen"), HIDDEN, size_limit="30Mi")
        node.run_with_volume(Pod("hidden"), HIDDEN, size_limit="30Mi", project=12)
        node.run_with_volume(Pod("walked"), SEEN, size_limit="30Mi")
        names, records = evicted(node, 2)
        assert sorted(names) == ["hidden", "walked"], names
        assert all(record["signal"] == "emptydirfs.limit" for record in records), records
        used = {record["pod"]["name"]: record["usage"] for record in records}
        assert all(30 << 20 < each < 41 << 20 for each in used.values()), used  # maybe before all was written
        vm.run("sleep 5")
        assert node.alive(within) and node.alive(unseen) and len(node.evictions()) == 2


def test_the_limit_of_a_pod_is_the_sum_of_its_quotas(vm):
    with node_of(vm) as node:
        start(node)
        limits = {"ephemeral-storage": "50Mi"}
        pods = {}
        for project, (name, logs) in enumerate((("inside", 5), ("beyond", 20)), start=20):
            pod = pods[name] = Pod(name, limits=limits)
            folder = f"{node.nodefs}/logs/{name}/main"
            vm.run(f"mkdir -p {folder}; chattr -p {project + 10} +P {folder}; "
                   f"head -c {logs}M /dev/zero > {folder}/0.log", check=True)
            node.run_with_volume(pod, HIDDEN, project=project)
        names, records = evicted(node, 1)
        assert names == ["beyond"] and records[0]["signal"] == "ephemeralpodfs.limit", records
        # Neither alone is as much; a slow machine is caught while it still writes.
        assert 50 << 20 < records[0]["usage"] < 61 << 20, records
        vm.run("sleep 5")
        assert node.alive(pods["inside"]) and len(node.evictions()) == 1


def test_the_limit_of_a_container_is_its_own_logs(vm):
    with node_of(vm) as node:
        start(node)
        logs = f"{node.nodefs}/logs/chatty"
        # Within the pod's limit, and the other container's.
        vm.run(f"mkdir -p {logs}/main {logs}/roomy; chattr -p 31 +P {logs}/main; chattr -p 32 +P {logs}/roomy; "
               f"head -c 40M /dev/zero > {logs}/roomy/0.log", check=True)
        pod = node.run_script(TwoContainers("chatty"), f"cd {logs}/main; sleep 6; {HIDDEN}; exec sleep infinity")
        vm.run("sleep 4")
        assert node.alive(pod) and not node.evictions()
        names, records = evicted(node, 1)
        assert names == ["chatty"] and records[0]["signal"] == "ephemeralcontainerfs.limit", records
        assert records[0]["message"] == 'Container main exceeded its local ephemeral storage limit "30Mi". ', records


def test_check_finds_the_quotas(vm):
    with node_of(vm) as node:
        for nodefs, state in ((node.nodefs, "ok"), (ROOT, "limited")):
            node.configure(configuration(disk={"nodefs": nodefs}))
            checks = {each["check"]: each for each in json.loads(vm.run("headroomctl check --json").out)["checks"]}
            assert checks["project quota"]["state"] == state, checks["project quota"]
            assert nodefs in checks["project quota"]["details"], checks["project quota"]
