# SPDX-License-Identifier: Apache-2.0
"""Filesystems apart, each with its own signals: of the pods that fill the one that is short the right
ones go, in order, and none that fills another."""

from disk_node import ROOT, Disk, DiskNode, configuration, evicted, expect_fresh_pod_lives, wait_for_condition
from node import Pod

KERNELS = ("6.1",)
PATIENT = True
MEMORY = "1G"
DISK = "1G"
METRICS_PORT = 9750

TRANSITION = 2  # seconds
SMALL = {"size": "160M", "inodes": 12000}
LARGE = {"size": "320M", "inodes": 24000}


REMOVE_DEAD = """for layer in {layers}/*/main; do
    pod=$(basename $(dirname $layer))
    [ -n "$(find /sys/fs/cgroup/kubepods.slice -name headroom-test-$pod.service)" ] || rm -rf $layer
done
"""


class ApartNode(DiskNode):
    """nodefs, imagefs and, unless layers are with the images, containerfs: each a filesystem of its own, the one to be
    filled smaller than the others."""

    def __init__(self, vm, small, layers="containers"):
        names = ["node", "images"] + (["containers"] if layers == "containers" else [])
        super().__init__(vm, *(Disk(name, **(SMALL if name == small else LARGE)) for name in names))
        self.images, self.layers, self.small = f"{ROOT}/images", f"{ROOT}/{layers}", f"{ROOT}/{small}"

    def with_thresholds(self, hard, **reclaim):
        """As with a runtime, layers of dead containers stay until they are removed: what headroom.reclaim is for."""
        self.vm.put(REMOVE_DEAD.format(layers=self.layers).encode(), "/run/remove-dead")
        paths = self.paths(imagefs=self.images, containerfs=self.layers, rootfs=f"{self.layers}/{{name}}/{{container}}")
        return configuration(hard, f"{TRANSITION}s", disk=paths,
                             reclaim={"user": "root", "containers": ["/bin/sh", "/run/remove-dead"], **reclaim})

    def reload(self, config):
        self.configure(config)
        self.vm.run("systemctl reload headroomd.service", check=True)

    def run_with_layer(self, pod, fill):
        """A pod whose writable layer FILL is run in."""
        layer = f"{self.layers}/{pod.name}/main"
        self.vm.run(f"mkdir -p {layer}", check=True)
        return self.run_script(pod, f"cd {layer}; {fill}; exec sleep infinity")

    def run_on(self, disk, pod, fill):
        """A pod that has filled its volume or its layer, as there are on that disk."""
        fill = f"{fill}; sync; touch /run/filled-{pod.name}"
        run = self.run_with_volume if disk == "node" else self.run_with_layer
        run(pod, fill)
        self.vm.wait_until(f"test -e /run/filled-{pod.name}", timeout=60)
        return pod

    def left(self, in_bytes):
        """What is free on the small one: MiB, or inodes."""
        what = "$(($(stat -f -c '%a * %S' {0}) >> 20))" if in_bytes else "$(stat -f -c %d {0})"
        return int(self.vm.run("echo " + what.format(self.small), check=True).out)

    def leave(self):
        super().leave()
        self.vm.run("rm -f /run/filled-*")


def write(mebibytes):
    return f"head -c {mebibytes}M /dev/zero > file"


def make(files):
    return f"mkdir d; seq -f d/%g 1 {files} | xargs touch"


def refused(vm):
    """A pod that asks to come now is not admitted."""
    vm.put(Pod("late").manifest().encode(), "/tmp/late.yaml")
    answer = vm.run("headroomctl admit -f /tmp/late.yaml")
    return answer.code == 1 and "The node had condition: [DiskPressure]." in answer.out


def now(vm):
    return float(vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)


def the_worst_two_go(vm, signal, filled, elsewhere, expected=None, layers="containers"):
    """Three pods fill the filesystem that is short, one of them within its request or of a higher priority; another fills
    another filesystem more than these. The larger of the others goes, then, that not being enough, the smaller.
    EXPECTED: the signal whose threshold this one's follows."""
    in_bytes = signal.endswith(".available")
    fill = write if in_bytes else make
    big, small, asked, other = (50, 35, 20, 80) if in_bytes else (4000, 2500, 1500, 6000)
    with ApartNode(vm, filled, layers) as node:
        # Enough again only when the smaller one is gone as well.
        limit = node.left(in_bytes) - asked - small // 2
        node.start(node.with_thresholds({"memory.available": "10Mi"}))
        kept = Pod("kept", "burstable", {"ephemeral-storage": "60Mi", "memory": "8Mi"}) if in_bytes else \
            Pod("kept", priority=10)  # inodes cannot be requested
        stay = [node.run_on(elsewhere, Pod("elsewhere"), fill(other)), node.run_on(filled, kept, fill(asked))]
        node.run_on(filled, Pod("small"), fill(small))
        node.run_on(filled, Pod("big"), fill(big))
        node.reload(node.with_thresholds({expected or signal: f"{limit}Mi" if in_bytes else str(limit)}))
        wait_for_condition(node, "DiskPressure", True, timeout=5)
        assert refused(vm)
        names, records = evicted(node, 2)
        assert names == ["big", "small"], [(record["pod"]["name"], record["ranking"]) for record in records]
        # Where layers are with the images their two filesystems are one, and so are the signals.
        same = {signal} | ({signal.replace("imagefs", "containerfs")} if layers == "images" else set())
        assert {record["signal"] for record in records} <= same, records
        wait_for_condition(node, "DiskPressure", False)
        lasted = now(vm) - records[-1]["instants_ns"]["killed"] / 1e9
        # From the last sample below the threshold on; what was freed shows in one seconds later.
        assert TRANSITION <= lasted < TRANSITION + 10, lasted
        assert all(node.alive(pod) for pod in stay)
        expect_fresh_pod_lives(node)
        assert len(node.evictions()) == 2, "two were enough"
        print(f"    {signal}: big, then small; the condition lasted {lasted:.1f} s longer")


def test_bytes_of_nodefs(vm):
    the_worst_two_go(vm, "nodefs.available", filled="node", elsewhere="containers")


def test_inodes_of_nodefs(vm):
    the_worst_two_go(vm, "nodefs.inodesFree", filled="node", elsewhere="containers")


def test_bytes_of_containerfs(vm):
    the_worst_two_go(vm, "containerfs.available", filled="containers", elsewhere="node", expected="nodefs.available")


def test_inodes_of_containerfs(vm):
    the_worst_two_go(vm, "containerfs.inodesFree", filled="containers", elsewhere="node", expected="nodefs.inodesFree")


def test_bytes_of_imagefs(vm):
    the_worst_two_go(vm, "imagefs.available", filled="images", elsewhere="node", layers="images")


def test_inodes_of_imagefs(vm):
    the_worst_two_go(vm, "imagefs.inodesFree", filled="images", elsewhere="node", layers="images")


def images_alone(vm, signal, junk):
    """Images have their filesystem to themselves: no pod dies for it. It is freed, and the condition goes."""
    in_bytes = signal.endswith(".available")
    with ApartNode(vm, "images") as node:
        limit = node.left(in_bytes) - 20
        hard = {signal: f"{limit}Mi" if in_bytes else str(limit)}
        node.start(node.with_thresholds({"memory.available": "10Mi"}))
        stay = [node.run_on("node", Pod("volume"), write(80)), node.run_on("containers", Pod("layer"), write(80))]
        vm.run(f"mkdir {node.images}/old; cd {node.images}/old; {junk}; sync", check=True, timeout=60)
        node.reload(node.with_thresholds(hard))
        wait_for_condition(node, "DiskPressure", True, timeout=5)
        vm.run("sleep 8")
        assert refused(vm) and not node.evictions(), "no death makes room among images"
        node.reload(node.with_thresholds(hard, images=["/bin/rm", "-rf", f"{node.images}/old"]))
        wait_for_condition(node, "DiskPressure", False)
        assert all(node.alive(pod) for pod in stay) and not node.evictions()
        expect_fresh_pod_lives(node)


def test_bytes_of_images_alone(vm):
    images_alone(vm, "imagefs.available", write(60))


def test_inodes_of_images_alone(vm):
    images_alone(vm, "imagefs.inodesFree", make(3000))
