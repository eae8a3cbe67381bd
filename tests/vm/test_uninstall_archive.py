# SPDX-License-Identifier: Apache-2.0
"""The portable archive in a guest: installed, it runs and evicts; uninstalled, the guest's files are what they were."""

from pathlib import Path

from file_tree import differences, files
from held_change import expect_restored, leave_one
from node import AUDIT, ETC, Node, Pod, kubelet_configuration

PATIENT = True
PAYLOAD = Path(__file__).resolve().parents[2] / "build/dist/payload"
KERNELS = ("6.1", "6.12", "sid")  # the user spaces of Debian 12, 13 and sid
INSTALL = "/opt/headroom/archive/install.sh"


class Installed(Node):
    """The daemon as install.sh installs it; only pods go."""

    def __init__(self, vm):
        self.vm, self.pods, self.recorders = vm, [], []

    def leave(self):
        self.leave_pods()


def test_uninstalled_it_leaves_nothing(vm):
    before = files(vm)
    print(vm.run(f"{INSTALL} && headroomd --check-config && systemctl enable --now headroomd headroom-kube", timeout=180, check=True).out)
    vm.wait_until("headroomctl status >/dev/null", timeout=30)
    with Installed(vm) as node:
        node.configure(kubelet_configuration("500Mi", oomScoreAdj="mirror"))
        vm.run("headroomd --check-config && systemctl reload headroomd", check=True)
        node.run_pod(Pod("hog"), "--rate 400M --until 4G")
        records = node.wait_for_evictions(1)
        assert records[0]["pod"]["name"] == "hog" and records[0]["outcome"] == "evicted", records
        changed = leave_one(node)
        kept = vm.run(f"{INSTALL} --uninstall", timeout=180, check=True).out
        expect_restored(node, changed)
    assert "/var/log/headroom" in kept and "/etc/headroom" in kept, kept
    vm.run(f"! pgrep headroom && test -e {AUDIT} && test -e {ETC}/headroom.yaml", check=True)
    # Again, so that its list says what it may remove; what an operator wrote is the operator's to remove.
    vm.run(f"{INSTALL} && {INSTALL} --purge && rm -r {ETC}", timeout=180, check=True)
    assert not (left := differences(before, files(vm))), left
    units = vm.run("systemctl list-units --all --plain --no-legend '*headroom*' | grep -v headroom-test; "
                   "busctl list --no-legend | grep -i headroom; find /sys/fs/cgroup -name '*headroom*'; true", check=True).out
    assert units == "", units
