# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes headroomd under load; then every panel and every rule must have something to show.

Prometheus runs on this machine, and the guest's endpoint is forwarded to it.
"""

import json
import re
import time
from pathlib import Path

from forwarded import forwarded
from machine import prometheus
from node import AUDIT, PORT, Node, Pod, kubelet_configuration

CORE = True
KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = PORT

ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "dashboards/prometheus").glob("*.yaml"))
BOARDS = sorted((ROOT / "dashboards/grafana").glob("*.json"))
PROMETHEUS_PORT = 19090
# To take 2 GiB: three times what the slowest emulator needed.
HOG_CPU_SECONDS = 30
RECORDED = re.compile(r"\b[a-z_]+:(?:headroom|node)_[a-z0-9_]+:[a-z0-9_]+")
NAME = re.compile(r"\b(?:headroom|kubelet|container|machine)_[a-z0-9_]+")
# Metrics of headroom-kube, which does not run here: tests/report/metrics/kube_metrics_test.cc compares their names.
KUBE = "headroom_kube_"
# Names that are the kubelet's, whatever the linter thinks of them.
THEIRS = ("kubelet_", "container_")


def busy_pod():
    return Pod("busy", "burstable", {"cpu": "50m"})


def run_busy_pod(node):
    """A pod that wants a CPU and may have a tenth of one."""
    pod = busy_pod()
    node.vm.put(pod.manifest().encode(), f"/etc/headroom/manifests/{pod.name}.yaml")
    node.vm.spawn("while :; do :; done", unit=pod.unit, slice=pod.slice, properties=["CPUQuota=10%"])
    node.pods.append(pod)
    return pod


def configuration():
    """With CPUs and slices kept as well."""
    config = json.loads(kubelet_configuration(hard="300Mi", compatibilityMetrics=True, cpus={"mode": "enforce"}, slices={"mode": "enforce"}))
    return json.dumps(config | {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})


def run_pinned_pod(node):
    amount = {"cpu": "1", "memory": "32Mi"}
    node.run_script(Pod("pinned", "guaranteed", amount, amount), "exec sleep 600")


def load(node):
    """Everything the panels are about: use, limits, throttling, an OOM at a limit, a reserve, CPUs of one's own, a slice
    that another writer changed, and an eviction."""
    vm = node.vm
    vm.run("sysctl -q kernel.bpf_stats_enabled=1; systemctl start reserved.slice; systemctl set-property --runtime "
           "reserved.slice MemoryMin=16M MemoryHigh=500M MemoryMax=600M", check=True)
    vm.spawn("exec /opt/headroom/bin/workload --hold 32M", unit="headroom-test-reserved.service", slice="reserved.slice")
    run_pinned_pod(node)
    node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 150M", "IOAccounting=yes")
    node.run_pod(Pod("squeezed", "burstable", {"memory": "20Mi"}), "--hold 60M", "MemoryHigh=40M")
    node.run_pod(Pod("bursting"), "--hold 1M --after 10 --until 90M", "MemoryMax=30M")
    busy = run_busy_pod(node)
    vm.run(f"systemctl set-property --runtime {busy.slice} CPUQuota=5%; "  # the pod's own quota, below its container's
           "systemctl set-property --runtime kubepods.slice CPUWeight=7", check=True)


def unload(node):
    node.vm.run("sysctl -q kernel.bpf_stats_enabled=0; systemctl stop headroom-test-reserved.service reserved.slice; "
                f"systemctl revert reserved.slice; systemctl revert {busy_pod().slice}; true", timeout=60)


def as_asked(expression: str) -> str:
    """What Grafana would send for it."""
    for variable in ("$instance", "$cluster", "$namespace"):
        expression = expression.replace(variable, ".*")
    return expression.replace("$__rate_interval", "20s")


def panel_expressions():
    for board in BOARDS:
        content = json.loads(board.read_text())
        for panel in content["panels"]:
            for target in panel["targets"]:
                yield f"{board.stem}: {panel['title']}", as_asked(target["expr"])
        for annotation in content["annotations"]["list"]:
            yield f"{board.stem}: annotation {annotation['name']}", as_asked(annotation["expr"])


def ever(prom, expression, began):
    """The expression had a sample at some second since then."""
    return prom.get("query_range", query=expression, start=began, end=time.time(), step="1s")["result"]


def rules_of(prom):
    return [rule for group in prom.get("rules")["groups"] for rule in group["rules"]]


def check_every_name_exists(prom):
    known = set(prom.get("label/__name__/values"))
    texts = [text for _, text in panel_expressions()] + [rule["query"] for rule in rules_of(prom)]
    asked = {name for text in texts for name in NAME.findall(RECORDED.sub("", text)) if not name.startswith(KUBE)}
    assert len(asked) > 40, asked
    assert not asked - known, f"nothing is served under these names: {sorted(asked - known)}"


def check_panels(prom, began):
    silent = [f"{where}: {expr}" for where, expr in panel_expressions() if not ever(prom, expr, began)]
    assert not silent, "no data for\n" + "\n".join(silent)


def check_rules(prom, began):
    rules = {rule["name"]: rule for rule in rules_of(prom)}
    ill = [f"{name}: {rule.get('lastError')}" for name, rule in rules.items() if rule["health"] != "ok"]
    assert not ill, ill
    for rule in rules.values():
        if rule["type"] == "recording":
            assert ever(prom, rule["name"], began), f"{rule['name']} recorded nothing"
    for name in ("HeadroomThresholdSoon", "HeadroomReserveOveruse"):
        assert ever(prom, rules[name]["query"], began), f"{name} had its reason and did not see it"
    # An OOM at a limit is no reason for the first, and nothing went wrong with the daemon.
    for name in ("HeadroomKernelOOMKill", "HeadroomEvictionFailed", "HeadroomAbsent", "HeadroomReadingsStale", "HeadroomDropped", "HeadroomReadingsMissing"):
        seen = ever(prom, f'ALERTS{{alertname="{name}",alertstate="firing"}}', began + 3)
        assert not seen, f"{name} cried wolf: {seen}"


def test_every_panel_and_rule_has_something_to_show(vm):
    with Node(vm) as node, forwarded(vm) as target:
        node.start(configuration())
        folder = ROOT / "build/vm/prometheus" / vm.kernel
        try:
            with prometheus.Prometheus(folder / str(time.time_ns()), target, RULES, PROMETHEUS_PORT) as prom:
                began = time.time()
                load(node)
                # So slow that the forecast is below a minute for a minute: HeadroomThresholdSoon wants it for half of one.
                hog = node.run_pod(Pod("hog"), "--hold 1M --rate 15M --until 4G")
                # It has the CPU share of a BestEffort pod beside busy ones: what is bounded is the CPU time that it needs.
                vm.wait_until(f"test -s {AUDIT} || [ $(awk '/^usage_usec/ {{print int($2 / 1e6)}}' {hog.cgroup}/cpu.stat) -ge "
                              f"{HOG_CPU_SECONDS} ]", timeout=900)
                record, = node.wait_for_evictions(1, timeout=10)
                assert record["pod"]["name"] == "hog", record
                time.sleep(8)
                assert prom.value("up") == 1 and prom.value("scrape_samples_scraped") > 500
                assert prom.value('sum(kubelet_evictions{eviction_signal="memory.available"})') == 1
                check_every_name_exists(prom)
                check_panels(prom, began)
                check_rules(prom, began)
        finally:
            unload(node)


def linted(page):
    """promtool's complaints about names that are ours."""
    lines = prometheus.promtool("check", "metrics", data=page).stdout.splitlines()
    return [line for line in lines if line and not line.startswith(THEIRS)]


def test_the_pages_please_promtool(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 20M")
        vm.run("sleep 2.2")
        for path in ("/metrics", "/metrics/cadvisor", "/metrics/resource"):
            page = vm.run(f"curl -sS http://127.0.0.1:{PORT}{path}", check=True).out
            assert page.count("\n") > 20, (path, page)
            assert not linted(page), (path, linted(page))
        page = vm.run(f"curl -sS -H 'Accept: application/openmetrics-text' http://127.0.0.1:{PORT}/metrics", check=True).out
        assert page.endswith("\n# EOF\n"), page[-200:]


def test_the_summary_agrees_with_the_cgroup(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        web = node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 80M")
        run_busy_pod(node)
        vm.run("sleep 3.2")
        summary = json.loads(vm.run(f"curl -sS http://127.0.0.1:{PORT}/stats/summary", check=True).out)
        pods = {pod["podRef"]["name"]: pod for pod in summary["pods"]}
        current = int(vm.run(f"cat {web.cgroup}/memory.current", check=True).out)
        assert abs(pods["web"]["memory"]["usageBytes"] - current) < 8 << 20, (pods["web"], current)
        assert 0.05e9 < pods["busy"]["cpu"]["usageNanoCores"] < 0.2e9, pods["busy"]
        systems = {each["name"]: each for each in summary["node"]["systemContainers"]}
        assert systems["misc"]["memory"]["workingSetBytes"] > 1 << 20, systems
        assert systems["pods"]["memory"]["workingSetBytes"] > 80 << 20, systems
        assert abs(summary["node"]["memory"]["availableBytes"] - node.memory_available()) < 64 << 20
        assert summary["node"]["fs"]["capacityBytes"] > 0 and summary["node"]["rlimit"]["maxpid"] > 0


def test_a_pods_network_is_that_of_its_namespace(vm):
    """By the kernel's own counters, read inside the namespace; a pod on the host's network has none of its own."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        node.run_pod(Pod("web"), "--hold 1M")
        own = node.run_pod(Pod("own"), "--hold 1M", "PrivateNetwork=yes")
        pid = vm.run(f"systemctl show -P MainPID {own.unit}", check=True).out.strip()
        vm.run(f"""ip link add headroom-test type veth peer name eth0 netns {pid} && ip link set headroom-test up
            nsenter -t {pid} -n ip link set eth0 up; sleep 5""", check=True)
        try:
            page = vm.run(f"curl -sS http://127.0.0.1:{PORT}/metrics/cadvisor", check=True).out
            device = vm.run(f"nsenter -t {pid} -n grep eth0: /proc/net/dev", check=True).out.split(":")[1].split()
            found = dict(re.findall(r'^(container_network_\w+)\{[^}]*pod="own",interface="eth0"\} (\S+)$', page, re.M))
            assert len(found) == 8 and float(device[9]) > 0, (found, device)
            for name, column in (("receive_bytes", 0), ("receive_errors", 2), ("transmit_packets", 9), ("transmit_packets_dropped", 11)):
                room = 4000 if "bytes" in name else 20  # what the link itself sends meanwhile
                assert abs(float(found[f"container_network_{name}_total"]) - float(device[column])) <= room, (name, found, device)
            assert not re.search(r'^container_network_[^\n]*pod="web"', page, re.M)
            summary = json.loads(vm.run(f"curl -sS http://127.0.0.1:{PORT}/stats/summary", check=True).out)
            pods = {pod["podRef"]["name"]: pod for pod in summary["pods"]}
            assert pods["own"]["network"]["name"] == "eth0" and "network" not in pods["web"], pods
        finally:
            vm.run("ip link del headroom-test")


def make_cgroups(vm, count):
    """Below one with all controllers, as units have them."""
    vm.run("cd /sys/fs/cgroup && mkdir -p headroom-test-many && cd headroom-test-many && "
           "echo '+cpu +memory +pids' > cgroup.subtree_control && "
           f"seq -f unit-%g.service {count} | xargs mkdir", timeout=400, check=True)


def remove_cgroups(vm):
    vm.run("find /sys/fs/cgroup/headroom-test-many -depth -type d -exec rmdir {} +", timeout=200)


def resident(vm, pid, what="VmRSS"):
    """MiB; VmHWM: the most since the start or the last reset."""
    return int(vm.run(f"awk '/^{what}:/{{print $2}}' /proc/{pid}/status", check=True).out) / 1024


def cpu_seconds(vm, pid):
    """Of the thread that serves alone."""
    return int(vm.run(f"cat $(dirname $(grep -l hr-http /proc/{pid}/task/*/comm))/schedstat | cut -d' ' -f1", check=True).out) / 1e9


def test_a_scrape_of_three_thousand_cgroups_is_not_felt(vm):
    with Node(vm) as node:
        try:
            make_cgroups(vm, 3000)
            node.start(kubelet_configuration(hard="100Mi", compatibilityMetrics=True, metrics={"cgroups": "all"}))
            vm.run("sleep 5")
            pid = vm.run("systemctl show -P MainPID headroomd", check=True).out.strip()
            idle, first = resident(vm, pid), resident(vm, pid, "VmHWM")
            vm.run(f"echo 5 > /proc/{pid}/clear_refs", check=True)  # forget the peak so far
            before = cpu_seconds(vm, pid)
            page = f"for i in 1 2 3 4 5; do curl -sS -o /tmp/page http://127.0.0.1:{PORT}/metrics; done; "
            series, size = vm.run(page + "grep -c '^container_threads{' /tmp/page; wc -c < /tmp/page",
                                  timeout=200, check=True).out.split()
            cost, peak = (cpu_seconds(vm, pid) - before) / 5, resident(vm, pid, "VmHWM")
            print(f"    a scrape of {series} cgroups, {int(size) / 1e6:.1f} MB: {cost:.3f} s of emulated CPU; "
                  f"resident {idle:.1f} MiB, {peak:.1f} at most while scraped, {first:.1f} at most while starting")
            assert int(series) > 3000
            assert peak < 40, "resident memory in MiB"
            assert peak - idle < 12, "what a scrape takes, in MiB"
        finally:
            remove_cgroups(vm)
            vm.run("rm -f /tmp/page")
