# SPDX-License-Identifier: Apache-2.0
"""A daemon's turn in the guest: it alone runs, with its own configuration, and leaves nothing for the next."""

import contextlib

from node import Node

from .peers import Peer

SWAP = "/dev/disk/by-id/virtio-swap"
SETTLE = 3  # seconds: starts, first looks and averages are over


@contextlib.contextmanager
def turn(node: Node, peer: Peer):
    node.vm.run("systemctl start kubepods.slice", check=True)  # where there are no pods that did
    peer.configure(node)
    node.vm.run(f"""swapoff -a; {f"swapon {SWAP}" if peer.swap else "true"}
        systemctl reset-failed {peer.service} 2>/dev/null; systemctl restart {peer.service}""", timeout=60, check=True)
    node.vm.run(f"sleep {SETTLE}", timeout=60, check=True)
    node.vm.run(f"systemctl is-active {peer.service} || {{ journalctl -u {peer.service} -n 30 -o cat; exit 1; }}", check=True)
    try:
        yield
    finally:
        leave(node, peer)


def leave(node: Node, peer: Peer) -> None:
    node.vm.run(f"systemctl stop {peer.service}; rm -f /etc/systemd/oomd.conf.d/lab.conf", timeout=60)
    node.leave_pods()
    # Its pressure is an average over seconds: the next kubepods.slice begins without.
    node.vm.run("systemctl stop kubepods.slice; systemctl revert kubepods.slice; systemctl stop systemd-oomd.socket; "
                "swapoff -a; echo 3 > /proc/sys/vm/drop_caches; true", timeout=60)
