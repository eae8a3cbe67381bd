# SPDX-License-Identifier: Apache-2.0
"""The kubelet's answers beside headroomd's: what the same path says on the same node in the same minute.

A page of metrics is read as {name: Family}, /stats/summary as one family a field. Two samples are the same thing if their
key is: the cgroup or the pod and container, and the labels that divide a metric (device, failure_type, ...).
"""

import json
import re
from dataclasses import dataclass, field

from cluster import ADDRESS, ETC

PATHS = ("/metrics/cadvisor", "/metrics/resource", "/stats/summary")
HEADROOMD = "http://127.0.0.1:9750"
LINE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
IDENTITY = ("id", "uid")  # one of these is enough; the others of a container's labels follow from it
DESCRIPTIVE = {"container", "image", "name", "namespace", "pod"}
MIB = 1 << 20
# Of one minute: what a quiet pod may have gained between two answers, and what the kubelet's own sample may be late by.
RELATIVE, BYTES, OTHER = 0.1, 8 * MIB, 2.0


# Differences that stay: (what, name) → why. A difference without an entry fails the test.
REASONS = {
    "missing (cadvisor_version_info|(container|machine)_scrape_error)": "the state of cAdvisor itself",
    "(missing|samples|absent) container_(fs_(io|reads?|writes?|sector)_.*|blkio_.*)": "of single disks: headroomd reads the sum of io.stat",
    "absent container_fs_(limit_bytes|usage_bytes|inodes_.*)": "of all mounts: headroomd has nodefs, imagefs and containerfs",
    "absent container_network_.*|missing pods\\.network\\..*": "the pods here are on the host's network",
    "missing container_network_tcp_.*|missing container_network_udp_.*|missing container_network_advance_tcp_.*": "counted by no device",
    "missing container_(sockets|tasks_state|ulimits_soft)": "would be read from /proc, for every file or thread",
    "missing container_(cpu_load|health_state|memory_failcnt|memory_kernel_usage).*": "constant in a kubelet on cgroup v2",
    "missing machine_(cpu_books|cpu_drawers|cpu_physical_cores|cpu_sockets|nvm_.*)": "the machine's inventory",
    "(labels|samples) machine_(cpu_cores|memory_bytes)": "its labels are the machine's ids, which a pod cannot read",
    "missing machine_swap_bytes|missing node_swap_usage_bytes|missing node\\.swap\\..*|absent container_memory_swap": "no swap here",
    "extra container_memory_(events|pgscan|pgsteal|workingset_refault)_.*": "this kubelet leaves them out",
    "absent container_memory_failures_total": "scope container: the kernel counts the hierarchy alone",
    "absent container_pressure_.*": "of pods' sandboxes",
    "absent container_(memory_max_usage_bytes|oom_events_total|spec_.*|threads.*)": "of the root, which has none: the kubelet says 0",
    "extra scrape_error": "the name of before 1.29",
    "value pods\\.(containers\\.rootfs|ephemeral-storage)\\.inodesUsed": "with the layer of the pod's sandbox, and its directories",
    "missing node\\.runtime\\..*(usedBytes|inodesUsed)": "of images and layers, which the runtime counts",
}


@dataclass
class Family:
    kind: str = "untyped"
    samples: dict[tuple, float] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Difference:
    name: str
    what: str  # missing, extra, type, labels, absent (samples of a name that both have), samples (all of them), value
    detail: str

    @property
    def reason(self) -> str:
        """Why it stays; empty: it should not be there."""
        return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, f"{self.what} {self.name}")), "")


def fetch(vm, path: str) -> tuple[str, str]:
    """The kubelet's answer and headroomd's, one right after the other."""
    script = f"""curl -sk --max-time 60 --cert {ETC}/admin.crt --key {ETC}/admin.key https://{ADDRESS}:10250{path} -o /run/kubelet_value &&
        curl -s --max-time 60 {HEADROOMD}{path} -o /run/ours"""
    vm.run(script, check=True, timeout=150)
    return vm.get("/run/kubelet_value").decode(), vm.get("/run/ours").decode()


def read(path: str, text: str) -> dict[str, Family]:
    return of_summary(json.loads(text)) if path == "/stats/summary" else of_metrics(text)


def of_metrics(text: str) -> dict[str, Family]:
    families: dict[str, Family] = {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith("# TYPE "):
            families.setdefault(words[2], Family()).kind = words[3]
        elif match := LINE.match(line):
            name, labels = match[1], dict(LABEL.findall(match[2] or ""))
            family = families.setdefault(name, Family())
            family.labels |= set(labels)
            family.samples[key_of(labels)] = float(match[3])
    return {name: each for name, each in families.items() if each.samples}


def key_of(labels: dict[str, str]) -> tuple:
    known = next(((name,) for name in IDENTITY if name in labels), ())
    drop = DESCRIPTIVE if known else {"image", "name"}
    return tuple(sorted((name, value) for name, value in labels.items() if name not in drop))


def of_summary(answer: dict) -> dict[str, Family]:
    """node.memory.usageBytes, pods.containers.cpu.usageNanoCores, ...: a key is the path of names to it."""
    families: dict[str, Family] = {}

    def walk(value, name: str, key: tuple) -> None:
        if isinstance(value, dict):
            for word, below in value.items():
                walk(below, f"{name}.{word}" if name else word, key)
        elif isinstance(value, list):
            for each in value:
                walk(each, name, (*key, str(each.get("name") or each.get("podRef", {}).get("name"))))
        elif isinstance(value, (int, float)):
            family = families.setdefault(name, Family("number"))
            family.samples[key] = float(value)
        else:
            families.setdefault(name, Family("text")).samples[key] = 0.0

    walk(answer, "", ())
    return families


def differences(kubelet_value: dict[str, Family], ours: dict[str, Family]) -> list[Difference]:
    found = []
    for name in sorted(kubelet_value | ours):
        if name not in ours:
            found.append(Difference(name, "missing", f"{kubelet_value[name].kind}, {len(kubelet_value[name].samples)} samples"))
        elif name not in kubelet_value:
            found.append(Difference(name, "extra", f"{ours[name].kind}, {len(ours[name].samples)} samples"))
        else:
            found += compared(name, kubelet_value[name], ours[name])
    return found


def compared(name: str, kubelet_value: Family, ours: Family) -> list[Difference]:
    found = []
    if kubelet_value.kind != ours.kind:
        found.append(Difference(name, "type", f"the kubelet {kubelet_value.kind}, headroomd {ours.kind}"))
    if kubelet_value.labels != ours.labels:
        found.append(Difference(name, "labels", f"only the kubelet: {sorted(kubelet_value.labels - ours.labels)}, "
                                                f"only headroomd: {sorted(ours.labels - kubelet_value.labels)}"))
    both = kubelet_value.samples.keys() & ours.samples.keys()
    if both and len(both) < len(kubelet_value.samples):
        absent = sorted(kubelet_value.samples.keys() - both, key=str)
        found.append(Difference(name, "absent", f"{len(absent)} of {len(kubelet_value.samples)}: {absent[0]}"))
    far = [key for key in both if not near(name, kubelet_value.samples[key], ours.samples[key])]
    if far:
        worst = max(far, key=lambda key: abs(kubelet_value.samples[key] - ours.samples[key]))
        found.append(Difference(name, "value", f"{len(far)} of {len(both)}; {worst}: the kubelet {kubelet_value.samples[worst]:.10g}, "
                                               f"headroomd {ours.samples[worst]:.10g}"))
    elif not both:
        found.append(Difference(name, "samples", f"none in common: {next(iter(kubelet_value.samples))}, {next(iter(ours.samples))}"))
    return found


def near(name: str, kubelet_value: float, ours: float) -> bool:
    room = BYTES if re.search("(?i)bytes|memory|rss|cache|swap|usage$", name) and "seconds" not in name else OTHER
    if re.search("NanoSeconds$", name):
        room = OTHER * 1e9
    if re.search("NanoCores$|avg(10|60|300)$", name):
        return True  # the two average over other times
    return abs(kubelet_value - ours) <= max(room, RELATIVE * max(abs(kubelet_value), abs(ours)))


def in_all(rounds: list[list[Difference]]) -> list[Difference]:
    """Those of the last round; of values, those that differed each time: a sample of cAdvisor's may be half a minute old."""
    each_time = set.intersection(*({(each.what, each.name) for each in found} for found in rounds))
    return [each for each in rounds[-1] if each.what != "value" or (each.what, each.name) in each_time]


def table(path: str, found: list[Difference], compared_names: int) -> str:
    """One row for a reason and a kind of difference, after the differences without a reason."""
    rows = [f"    {path}: {compared_names} names in common, {len(found)} differences"]
    rows += [f"      ! {each.what} {each.name}: {each.detail}" for each in found if not each.reason]
    for what, reason in dict.fromkeys((each.what, each.reason) for each in found if each.reason):
        of_it = [each for each in found if (each.what, each.reason) == (what, reason)]
        names = ", ".join(dict.fromkeys(each.name for each in of_it))
        rows.append(f"      {what} ({reason}): {names if len(names) < 300 else names[:300] + '...'}")
    return "\n".join(rows)
