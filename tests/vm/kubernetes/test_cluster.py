# SPDX-License-Identifier: Apache-2.0
"""headroomd and headroom-kube beside a real kubelet and a real API server, of the version that the payload has.

`make test-kubernetes`; not a part of `make test`: see machine/kubernetes_release.py for the versions. They share one cluster.
"""

import json
import re
import time
from pathlib import Path

import answers
import cluster as clusters
import replacement
from cluster_node import ClusterNode, admit, objects
from kube_node import RUN
from lab import Skip
from node import unreclaimable
from worker import THRESHOLD_MIB

MEMORY, CPUS = "4G", 2
METRICS_PORT, HTTPS_PORT = 9750, 9751
ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "build/bench"
RUNS = 3
OWN = "headroom-system"
results = {}


def test_the_api_server_takes_the_manifests(vm):
    """--validate=false: a field of a container's, appArmorProfile, is younger than 1.20, which drops it."""
    cluster = clusters.of(vm)
    version = cluster.ask("GET", "/version").body["gitVersion"]
    built = {name: cluster.manifests(name).decode() for name in ("base", "enforce", "everything")}
    # A dry run wants the namespace to be there.
    namespace = next(each for each in objects(built["base"]) if "kind: Namespace" in each)
    cluster.kubectl("apply", "-f", "-", data=namespace.encode())
    for name, text in built.items():
        said = cluster.kubectl("apply", "--dry-run=server", "--validate=false", "-f", "-", data=text.encode()).out.splitlines()
        assert len(said) == len(objects(text)) and all("(server dry run)" in line for line in said), (name, said)
    admit(cluster)  # for good
    print(f"    {version}: {', '.join(f'{len(objects(text))} objects of {name}' for name, text in built.items())}")


def test_pods_and_thresholds_are_the_kubelets(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both(mode="observe", compatibilityMetrics=True)
        web, = cluster.pods(replacement.NAMESPACE, "web")
        name = web["metadata"]["name"]
        known = node.wait_for(node.known, lambda pods: f"shop/{name}" in pods, timeout=120)[f"shop/{name}"]
        assert known["uid"] == web["metadata"]["uid"], known
        config = vm.run("headroomctl config", check=True).out
        assert re.search(rf'memory.available: "600Mi" +# {RUN}/kubelet.yaml:\d+', config), config
        limit = int(vm.run("cat /sys/fs/cgroup/kubepods.slice/memory.max", check=True).out)
        limits = {each["signal"]: each["limit"] for each in node.status()["thresholds"]}
        assert limits["allocatableMemory.available"] == THRESHOLD_MIB << 20 < limit, limits
        # The container that runs in the cgroup which containerd and systemd made for it.
        status, = web["status"]["containerStatuses"]
        container = status["containerID"].removeprefix("containerd://")
        series = re.search(r'^container_memory_working_set_bytes\{([^}]*name="' + container + r'"[^}]*)\}', node.metrics(), re.M)[1]
        for label in ('container="main"', f'image="{status["image"]}"', 'namespace="shop"', f'pod="{name}"'):
            assert label in series, series
        output = vm.run("headroomctl status", check=True).out
        assert re.search(r"kubelet:  https://127.0.0.1:10250  \d+ pods", output), output


def test_its_numbers_are_the_kubelets(vm):
    """The same paths of both on the same node in the same minute; every difference is printed, and each has its reason."""
    cluster = clusters.of(vm)
    if cluster.release < (1, 36):
        raise Skip("the reasons are those for the kubelet of 1.36")
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both(mode="observe", compatibilityMetrics=True)
        web, = cluster.pods(replacement.NAMESPACE, "web")
        node.wait_for(node.known, lambda pods: f"shop/{web['metadata']['name']}" in pods, timeout=120)
        vm.run("sleep 45", timeout=60)  # both have sampled the pod, and the kubelet its disks
        wrong = []
        for path in answers.PATHS:
            rounds = []
            for _ in range(RUNS):
                theirs, ours = (answers.read(path, text) for text in answers.fetch(vm, path))
                rounds.append(answers.differences(theirs, ours))
                vm.run("sleep 5")
            found = answers.in_all(rounds)
            print(answers.table(path, found, len(theirs.keys() & ours.keys())))
            wrong += [each for each in found if not each.reason]
        assert not wrong, wrong


def test_an_evicted_pod_is_replaced(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both(conditions=True)
        replace_by_package(node, "headroom", replacement.SLOW)


def replace_by_package(node, who: str, speed: str) -> None:
    before = len(node.evictions())
    runs = [run_and_check(node, before + number, speed) for number in range(RUNS)]
    node.wait_for(node.report_status, lambda status: status.get("reported") == before + RUNS and status["pending"] == 0, timeout=120)
    print_runs(node.vm, who, runs)


def test_a_pod_that_fills_memory_fast_is_evicted_by_the_package(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both(conditions=True)
        for speed in (replacement.FAST, replacement.FULL):
            replace_by_package(node, f"headroom, {speed}", speed)


def run_and_check(node, number: int, speed: str) -> dict:
    """One eviction, by headroomd alone, reported to the API server as a kubelet reports it."""
    cluster = node.cluster
    run = replacement.run_once(cluster, speed)
    assert_harmless(run)
    record = node.evictions()[-1]
    assert len(node.evictions()) == number + 1 and record["pod"]["uid"] == run["uid"], node.evictions()
    assert record["signal"] == "allocatableMemory.available", record
    assert run["reason"] == "Evicted", run
    event, = replacement.events_of_eviction(cluster, run["uid"])
    assert event["source"]["component"] == "headroom" and event["message"] == record["message"], event
    return run | {"latency_ms": record["latency"]}


def assert_harmless(run: dict) -> None:
    assert (run["kernel_oom_kills"], run["wrong_victims"]) == (0, 0), run


def test_the_documented_commands_start_the_daemon_set(vm):
    """Those of docs/kubernetes.md, as they are written there, from a node without the image to `headroomctl top`."""
    cluster = clusters.of(vm)
    if cluster.release < (1, 33):
        raise Skip("the documented commands are those for Kubernetes 1.33 and later")
    replacement.furnish(cluster)
    build, *commands = documented_commands()
    assert build == "make image" and len(commands) == 4, (build, commands)  # the image is that of the Makefile's target
    tree = "/run/source"
    vm.run(f"""mkdir -p {tree}/build/image && ln -s /opt/headroom/kubernetes {tree}/ &&
        ln -s /opt/headroom/share/headroom-image.tar {tree}/build/image/headroom.tar
        ctr --namespace k8s.io images ls -q | grep headroom | xargs -n 1 ctr --namespace k8s.io images rm --sync""", check=True, timeout=120)
    began = time.monotonic()
    try:
        for command in commands:
            done = vm.run(f"cd {tree} && KUBECONFIG={clusters.ETC}/admin.conf {command}", timeout=clusters.SLOW, check=True)
        print(f"    five commands, {time.monotonic() - began:.0f} s without the first (emulated); the last one printed:\n"
              + "\n".join(f"      {line}" for line in done.out.splitlines()[:12]))
        assert "shop/web-" in done.out, done.out
        inside = "kubectl -n headroom-system exec daemonset/headroom -c headroomd -- headroomctl"
        for words, said in (("status", "kubelet:  https://127.0.0.1:10250"), ("pods", "web-")):
            done = vm.run(f"KUBECONFIG={clusters.ETC}/admin.conf {inside} {words}", timeout=240, check=True)
            assert said in done.out, (words, done.out)
    finally:
        remove_daemon_set(cluster)


def documented_commands() -> list[str]:
    text = (ROOT / "docs/kubernetes.md").read_text()
    block = text[text.index("From nothing to the pods of a node"):].split("\n\n")[1]
    return [line.partition("  #")[0].strip() for line in block.splitlines()]


def remove_daemon_set(cluster) -> None:
    for what in (("daemonset", "headroom"), ("pods", "--all")):  # nothing else collects what it leaves
        cluster.kubectl("delete", "--namespace", OWN, "--wait=false", *what)
    cluster.wait("headroom's pod is gone", lambda: not cluster.pods(OWN))
    cluster.vm.run("rm -rf /var/log/headroom /run/headroom /run/headroom-kube")  # of the node: the next test's daemon starts anew


def test_the_daemon_set_alone_does_it_too(vm):
    """Nothing of ours is on the node but what the manifests put there: the victim is replaced, and reported."""
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    cluster.kubectl("apply", "--validate=false", "-f", "-", data=cluster.manifests())
    try:
        pod = cluster.wait("headroom's pod is ready", lambda: replacement.running(cluster, "", OWN))
        names = {each["name"] for each in pod["status"]["containerStatuses"]}
        assert names == {"headroomd", "headroom-kube"}, names
        check_who_may_read_the_metrics(cluster)
        web, = cluster.pods(replacement.NAMESPACE, "web")
        cluster.wait("headroomd knows the pods", lambda: f"shop/{web['metadata']['name']}" in known_by_the_page(vm), 300)
        print_runs(vm, "headroom, of the DaemonSet", [run_by_daemon_set(cluster, replacement.SLOW)])
        again = replacement.running(cluster, "", OWN)
        assert [each["restartCount"] for each in again["status"]["containerStatuses"]] == [0, 0], again["status"]
        print_memory(cluster, again)
    finally:
        remove_daemon_set(cluster)


def run_by_daemon_set(cluster, speed: str) -> dict:
    run = replacement.run_once(cluster, speed)
    log = cluster.vm.get("/var/log/headroom/evictions.jsonl").decode().splitlines()
    record, = [json.loads(each) for each in log if run["uid"] in each]
    assert run["reason"] == "Evicted" and record["outcome"] == "evicted", (run, record)
    assert_harmless(run)
    return run | {"latency_ms": record["latency"]}


def test_a_pod_that_fills_memory_fast_is_evicted_by_the_daemon_set(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    cluster.kubectl("apply", "--validate=false", "-f", "-", data=cluster.manifests())
    try:
        cluster.wait("headroom's pod is ready", lambda: replacement.running(cluster, "", OWN))
        web, = cluster.pods(replacement.NAMESPACE, "web")
        cluster.wait("headroomd knows the pods", lambda: f"shop/{web['metadata']['name']}" in known_by_the_page(vm), 300)
        for speed in (replacement.FAST, replacement.FULL):
            print_runs(vm, f"headroom, of the DaemonSet, {speed}", [run_by_daemon_set(cluster, speed) for _ in range(RUNS)])
    finally:
        remove_daemon_set(cluster)


def check_who_may_read_the_metrics(cluster) -> None:
    """As a Prometheus in the cluster asks: over HTTPS, with the token of a service account."""
    accounts = f"/api/v1/namespaces/{replacement.NAMESPACE}/serviceaccounts"
    tokens = {"": ""}
    for name in ("prometheus", "other"):
        cluster.ask("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        answer = cluster.ask("POST", f"{accounts}/{name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        tokens[name] = answer.body["status"]["token"]
    cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "prometheus"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "headroom-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": replacement.NAMESPACE}]})

    def code(name: str) -> str:
        return cluster.vm.run(f"curl -sk --max-time 60 -o /run/scraped -w '%{{http_code}}' -H 'Authorization: Bearer {tokens[name]}' "
                              f"https://{clusters.ADDRESS}:{HTTPS_PORT}/metrics", timeout=90).out

    cluster.wait("the metrics are served", lambda: code("prometheus") == "200", 120)
    assert "headroom_build_info" in cluster.vm.get("/run/scraped").decode()
    assert (code("other"), code("")) == ("403", "401"), (code("other"), code(""))
    plain = cluster.vm.run(f"curl -s --max-time 20 http://{clusters.ADDRESS}:{METRICS_PORT}/metrics")
    assert plain.code != 0, "headroomd listens on the loopback alone"


def print_memory(cluster, pod: dict) -> None:
    """What the limits are chosen by."""
    for status in pod["status"]["containerStatuses"]:
        text = cluster.vm.run(f"cd {replacement.scope_of(cluster, pod, status)} && cat memory.max memory.stat", check=True).out
        limit, stat = text.split("\n", 1)
        needed = unreclaimable(stat)
        print(f"    {status['name']}: {needed / replacement.MIB:.1f} MiB that cannot be reclaimed, "
              f"limit {int(limit) // replacement.MIB} MiB")
        assert needed < int(limit) * 0.8, (status["name"], stat)


def known_by_the_page(vm) -> set[str]:
    """Pods as headroomd's page has them; none while it does not answer, or has read nothing yet."""
    answer = vm.run(f"curl -sf --max-time 20 http://127.0.0.1:{METRICS_PORT}/api/status", timeout=60)
    pods = json.loads(answer.out).get("pods", []) if answer.code == 0 else []
    return {f"{pod['namespace']}/{pod['name']}" for pod in pods}


def about(vm) -> dict:
    return {"kernel": vm.run("uname -r").out.strip(), "kubernetes": clusters.of(vm).ask("GET", "/version").body["gitVersion"],
            "headroomd": vm.run("sha256sum < /opt/headroom/bin/headroomd", check=True).out.split()[0]}


def test_beside_it_the_kubelets_own_eviction(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    runs = [replacement.run_once(cluster) for _ in range(RUNS)]
    print_runs(vm, "kubelet", runs)


def test_beside_it_the_kubelet_and_a_pod_that_fills_memory_fast(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    for speed in (replacement.FAST, replacement.FULL):
        print_runs(vm, f"kubelet, {speed}", [replacement.run_once(cluster, speed) for _ in range(RUNS)])


def print_runs(vm, who: str, runs: list[dict]) -> None:
    results[who] = {"medians": replacement.medians(runs), "runs": runs}
    print(f"    {who}: seconds from the crossing, median of {len(runs)}: "
          f"{', '.join(f'{name} {at:.2f}' for name, at in results[who]['medians'].items())}; "
          f"dead after {', '.join(str(run['seconds']['dead']) for run in runs)}; "
          f"kernel OOM kills {sum(run['kernel_oom_kills'] for run in runs)}, wrong victims {sum(run['wrong_victims'] for run in runs)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Debian's 1.20 has a table of its own.
    name = "kubernetes.json" if clusters.of(vm).release == (1, 20) else "kubernetes-current.json"
    # Tests that were run one by one, of the same programs, make one table.
    earlier = json.loads((RESULTS / name).read_text()) if (RESULTS / name).exists() else {}
    this = about(vm)
    if any(earlier.get(key) != value for key, value in this.items()):
        earlier = {}
    (RESULTS / name).write_text(json.dumps(earlier | this | results, indent=1) + "\n")


def test_the_node_says_so_too(vm):
    """Conditions by server-side apply and taints, and both are taken back."""
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    path = f"/api/v1/nodes/{cluster.node}"

    def taints() -> list[str]:
        return [each["key"] for each in cluster.ask("GET", path).body["spec"].get("taints", [])]

    def said() -> str:
        return clusters.condition(cluster.ask("GET", path).body, "HeadroomMemoryPressure")

    with ClusterNode(cluster) as node:
        node.start_both(conditions=True, taints=True)
        node.wait_for(said, lambda status: status == "False", timeout=120)
        replacement.scale(cluster, 1)
        node.wait_for_evictions(1, timeout=300)
        replacement.scale(cluster, 0)
        node.wait_for(said, lambda status: status == "True", timeout=120)
        node.wait_for(taints, lambda keys: "headroom.io/memory-pressure" in keys, timeout=120)
        replacement.clear_away(cluster)
        node.wait_for(taints, lambda keys: "headroom.io/memory-pressure" not in keys, timeout=180)
        node.configure(node.configuration())
        vm.run("systemctl reload headroom-kube", check=True)
        node.wait_for(said, lambda status: status == "", timeout=120)
