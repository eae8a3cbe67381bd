# SPDX-License-Identifier: Apache-2.0
"""The packages in a guest: purged, the guest's files are what they were before they were installed."""

from pathlib import Path

from file_tree import differences, files
from held_change import expect_restored, leave_one
from node import Pod, kubelet_configuration
from test_deb import DEBS, Installed, install

PATIENT = True
PAYLOAD = Path(__file__).resolve().parents[2] / "build/deb/payload"
MEMORY = "2G"


def test_purged_they_leave_nothing(vm):
    # First what they depend on: that stays.
    vm.run(f""". /etc/os-release
        ! ls {DEBS}/depends/$VERSION_CODENAME/*.deb 2>/dev/null || dpkg -i --skip-same-version {DEBS}/depends/$VERSION_CODENAME/*.deb""",
           timeout=300, check=True)
    before = files(vm)
    install(vm)
    with Installed(vm) as node:
        node.configure(kubelet_configuration("500Mi", oomScoreAdj="mirror"))
        vm.run("headroomd --check-config && systemctl reload headroomd", check=True)
        node.run_pod(Pod("hog"), "--rate 400M --until 4G")
        assert node.wait_for_evictions(1)[0]["outcome"] == "evicted"
        changed = leave_one(node)
        vm.run("dpkg -P headroom-kube headroom-dashboards headroom", timeout=120, check=True)
        expect_restored(node, changed)
    left = differences(before, files(vm))
    # What an operator wrote stays: the manifests of the test's pods.
    assert all(line.startswith(("left: /etc/headroom",)) for line in left), left
    vm.run("rm -rf /etc/headroom", check=True)
    assert not (left := differences(before, files(vm))), left
