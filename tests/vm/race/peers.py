# SPDX-License-Identifier: Apache-2.0
"""headroomd and its peers as Debian packages them, each set to act as near to one point as it can be set.

The point is THRESHOLD of memory still available. earlyoom and nohang know MemAvailable; headroomd the kubelet's
memory.available, which counts the kernel's own memory as available. oomd knows anonymous memory in use: it is set to what
that is when so much is left. systemd-oomd knows pressure and swap alone: it has the shortest time and a low limit.
"""

import json
import re
from dataclasses import dataclass
from typing import Callable

from node import Node, kubelet_configuration

from . import samples

THRESHOLD = 400 << 20
LEFT = THRESHOLD >> 20  # in MiB
PACKAGES = ("earlyoom", "nohang", "oomd", "systemd-oomd")
PODS = "kubepods.slice/kubepods-pod*,kubepods.slice/kubepods-burstable.slice/*,kubepods.slice/kubepods-besteffort.slice/*"


@dataclass(frozen=True)
class Peer:
    name: str
    configure: Callable[[Node], None]  # when the pods are there
    setting: str
    unit: str = ""
    quantity: str = "available"  # which of a sample's has to cross THRESHOLD
    swap: bool = False

    @property
    def service(self) -> str:
        return f"{self.unit or self.name}.service"


def headroomd(node: Node) -> None:
    node.configure(kubelet_configuration(hard=f"{LEFT}Mi"))


def earlyoom(node: Node) -> None:
    """It takes a size as a share of MemTotal, and compares that with MemAvailable's share of what processes can have:
    set to 400 MiB of 2 GiB, 1.8.2 waits until 368 are left. So it is set to what means THRESHOLD."""
    seen = samples.now(node.vm)
    kib = THRESHOLD // 1024 * seen.total // (seen.available + seen.anonymous)
    # Twice: for SIGKILL as for SIGTERM, as a hard threshold has no grace.
    node.vm.put(f'EARLYOOM_ARGS="-r 3600 -M {kib},{kib}"\n'.encode(), "/etc/default/earlyoom")


def nohang(node: Node) -> None:
    text = node.vm.get("/usr/share/nohang/nohang.conf").decode()
    setting = re.sub(r"^(soft|hard)_threshold_min_mem .*$", rf"\1_threshold_min_mem = {LEFT} M", text, flags=re.M)
    node.vm.put(setting.encode(), "/etc/nohang/nohang.conf")


def oomd(node: Node) -> None:
    """Every second, which is as often as it can look; the fastest growing of all pods but the smallest."""
    seen = samples.now(node.vm)
    anonymous = seen.anonymous + seen.available - THRESHOLD
    detector = {"name": "memory_above", "args": {"cgroup": "/", "threshold_anon": f"{anonymous >> 10}K", "duration": "0"}}
    killer = {"name": "kill_by_memory_size_or_growth", "args": {"cgroup": PODS, "growing_size_percentile": "20"}}
    rules = {"rulesets": [{"name": "memory", "detectors": [["little is left", detector]], "actions": [killer]}]}
    node.vm.put(json.dumps(rules, indent=1).encode(), "/etc/oomd/oomd.json")
    node.vm.put(b'DAEMON_OPTS="--interval 1 --config /etc/oomd/oomd.json"\n', "/etc/default/oomd")


def systemd_oomd(node: Node) -> None:
    """A second is the shortest it takes."""
    node.vm.put(b"[OOM]\nSwapUsedLimit=10%\nDefaultMemoryPressureDurationSec=1s\n", "/etc/systemd/oomd.conf.d/lab.conf")
    node.vm.run("systemctl set-property --runtime kubepods.slice ManagedOOMMemoryPressure=kill "
                "ManagedOOMMemoryPressureLimit=5% ManagedOOMSwap=kill", check=True)


PRESSURE = "full avg10 of the pods' slice above 5 % for 1 s"
PEERS = (
    Peer("headroomd", headroomd, f"memory.available < {LEFT}Mi", quantity="working_set_available"),
    Peer("earlyoom", earlyoom, f"MemAvailable <= {LEFT} MiB"),
    Peer("nohang", nohang, f"MemAvailable <= {LEFT} MiB"),
    Peer("oomd", oomd, f"anonymous memory above what it is at MemAvailable {LEFT} MiB, every second"),
    Peer("systemd-oomd", systemd_oomd, PRESSURE),
    Peer("systemd-oomd, 1 GiB of swap", systemd_oomd, f"{PRESSURE}, or 10 % of swap used", unit="systemd-oomd", swap=True),
)
