# SPDX-License-Identifier: Apache-2.0
"""headroom-kube, as built, against an API server that fails in all the ways API servers fail; and the manifests."""

import collections
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))

import chart  # noqa: E402
import manifests  # noqa: E402
import named_tests  # noqa: E402
from apiserver_double import FAULTS, ApiServer, make_certificate  # noqa: E402
from client import NODE, PROGRAM, Client, node_summary  # noqa: E402
from machine import kubernetes_release  # noqa: E402
from machine.debian import BuildError  # noqa: E402
from scraper import free_port, headroomd, scrape  # noqa: E402

said = []  # requests that were granted: the published schemas and the roles judge them at the end


@contextlib.contextmanager
def cluster(**settings):
    with tempfile.TemporaryDirectory(prefix="headroom-kube-") as place:
        folder = Path(place)
        with ApiServer(folder, pem=make_certificate(folder)) as api:
            api.cluster.add_node(NODE)
            client = Client(folder, api, **settings)
            try:
                yield api, client
            finally:
                client.kill()
                client.output.close()
        said.extend(entry for entry in api.journal if entry.get("status", 500) < 300)
        assert not api.complaints, api.complaints


def wait_for_all_reported(api, client, uids, seconds, what):
    """Every one of them is gone from the API, and nothing is left to report."""
    def done():
        return set(api.effects("gone")) >= set(uids) and client.waiting() == 0
    client.wait(done, seconds, what)


def each_once(api, uids, status=True):
    """None lost, none twice, and no other pod."""
    for what in (["status"] if status else []) + ["gone", "event"]:
        counts = collections.Counter(api.effects(what))
        assert set(counts) <= set(uids), (what, set(counts) - set(uids))
        assert all(n == 1 for n in counts.values()), (what, counts.most_common(3))
    assert set(api.effects("gone")) == set(api.effects("event")) == set(uids)


def paths(api):
    return [(entry["verb"], entry["path"].split("?")[0].split("/")[-1]) for entry in api.journal]


def test_each_way_of_telling_takes_its_steps():
    ways = {"status": [("PATCH", "status"), ("POST", "events")],
            "evict": [("PATCH", "status"), ("POST", "eviction"), ("POST", "events")],
            "delete": [("PATCH", "status"), ("DELETE", "web"), ("POST", "events")]}
    for after, wanted in ways.items():
        with cluster(after=after) as (api, client):
            api.cluster.add_pod("shop", "web", "u-web")
            client.start()
            began = time.monotonic()
            client.evict("shop", "web", "u-web")
            client.wait(lambda: api.effects("event"), 10, "nothing was reported")
            took = time.monotonic() - began
            client.wait(lambda: client.waiting() == 0, 10, "not finished")
            assert paths(api) == wanted, (after, paths(api))
            if after == "status":
                pod = api.cluster.pods["shop", "web"]
                assert pod["status"]["phase"] == "Failed" and pod["status"]["reason"] == "Evicted", pod
                assert {each["type"] for each in pod["status"]["conditions"]} == {"Ready", "DisruptionTarget"}, pod
        print(f"    {after}: reported in {took * 1000:.0f} ms after the record")


def test_a_pod_that_was_not_killed_is_not_reported():
    with cluster() as (api, client):
        client.start()
        client.evict("shop", "a", "u-a", outcome="would_evict")
        client.evict("shop", "b", "u-b", outcome="already_gone")
        client.evict("shop", "c", "u-c", unit="container")
        client.evict("shop", "last", "u-last")
        client.wait(lambda: api.effects("event") == ["u-last"], 10, "the last was not reported")
        assert all("/last" in entry["path"] or "u-last" in entry["body"] for entry in api.journal), api.journal


def test_a_new_pod_by_the_same_name_is_left_alone():
    for after in ("evict", "delete"):
        with cluster(after=after) as (api, client):
            api.cluster.add_pod("shop", "web-0", "u-new")
            client.start()
            client.evict("shop", "web-0", "u-old")
            client.wait(lambda: api.effects("event") == ["u-old"] and client.waiting() == 0, 15, "not finished")
            assert not api.effects("gone") and not api.effects("status"), api.cluster.effects
            assert api.cluster.pods["shop", "web-0"]["status"]["phase"] == "Running"
            client.wait(lambda: client.state().get("podGone") == 1, 10, "it does not say that the pod is gone")


def test_a_budget_is_waited_for_as_long_as_the_server_asks():
    """Status is refused, so the pod has not failed and its budget counts."""
    with cluster(after="evict", events=False) as (api, client):
        api.cluster.add_pod("shop", "web", "u-web")
        api.cluster.budgets["shop/web"], api.cluster.retry_after = 2, 2
        api.faults.next = ["page"]  # the status
        client.start()
        client.evict("shop", "web", "u-web")
        client.wait(lambda: api.effects("gone") == ["u-web"], 20, "it was not evicted")
        asked = [entry["at"] for entry in api.journal if entry["path"].endswith("/eviction")]
        waits = [round(b - a, 2) for a, b in zip(asked, asked[1:])]
        assert len(asked) == 3 and all(2.0 <= wait < 3.5 for wait in waits), waits
        print(f"    Retry-After 2 s: asked again after {waits}")


def test_an_old_server_is_asked_in_its_own_words():
    with cluster(after="evict", events=False) as (api, client):
        api.cluster.oldest_policy = "policy/v1beta1"
        api.cluster.add_pod("shop", "web", "u-web")
        client.start()
        client.evict("shop", "web", "u-web")
        client.wait(lambda: api.effects("gone") == ["u-web"], 20, "it was not evicted")


def test_a_server_that_is_too_old_gets_no_report():
    with cluster() as (api, client):
        api.version = "1.19+"
        api.cluster.add_pod("shop", "web", "u-web")
        client.start(takes_part=False)
        client.evict("shop", "web", "u-web")
        wanted = "the API server is Kubernetes 1.19; headroom-kube needs 1.20 or later"
        client.wait(lambda: client.state().get("error") == wanted, 10, "it does not say so")
        time.sleep(1)
        assert not api.journal, api.journal
        said = (client.folder / "headroom-kube.log").read_text()
        assert said.count(wanted) == 1, said


def test_an_outage_loses_nothing_and_tells_nothing_twice():
    with cluster() as (api, client):
        uids = [f"u-{i}" for i in range(60)]
        for i, uid in enumerate(uids):
            api.cluster.add_pod("shop", f"web-{i}", uid)
        api.cluster.replace = True
        client.start()
        api.stop()
        began = time.monotonic()
        for i, uid in enumerate(uids):
            client.evict("shop", f"web-{i}", uid)
            if i == 30:
                client.kill()
                client.start()
            time.sleep(0.1)
        client.wait(lambda: client.waiting() == 60, 10, "not all are kept")
        assert "error" in client.state(), client.state()
        time.sleep(max(0.0, 12 - (time.monotonic() - began)))
        api.start()
        back = time.monotonic()
        wait_for_all_reported(api, client, uids, 90, "not all were reported")
        each_once(api, uids)
        print(f"    60 evictions in an outage of {back - began:.0f} s and one kill -9: all reported "
              f"{time.monotonic() - back:.1f} s after it, {len(api.journal)} requests")
        client.wait(lambda: "error" not in client.state(), 10, "it still reports an error")


def test_every_fault_at_once_loses_nothing_and_tells_nothing_twice():
    """Four of ten requests go wrong in every way there is; the program is killed, the token and the log are rotated."""
    with cluster() as (api, client):
        dice = random.Random(7)
        uids = [f"u-{i}" for i in range(120)]
        for i, uid in enumerate(uids):
            api.cluster.add_pod("shop", f"web-{i}", uid)
        for i in range(20):
            api.cluster.add_pod("shop", f"quiet-{i}", f"quiet-{i}")
        api.cluster.replace = True
        api.faults.chance, api.faults.patience = 0.4, 1.3
        # Those that cost the client's whole patience are drawn less often: the test is to end.
        api.faults.kinds = [each for each in FAULTS for _ in range(1 if each in ("slow", "late") else 4)
                            if each != "page"]
        client.start()
        began, kills, restless = time.monotonic(), 0, 0
        for i, uid in enumerate(uids):
            client.evict("shop", f"web-{i}", uid)
            time.sleep(0.03)
            if i % 24 == 12:
                client.kill()
                kills += 1
                client.start()
            if i in (40, 80):
                api.rotate(f"token-{i}", write_file=False)  # the file comes later, as a kubelet's does
                time.sleep(0.5)
                api.rotate(f"token-{i}")
            if i in (55, 100):
                client.rotate_log()
                restless += 1
            if dice.random() < 0.05:
                time.sleep(0.3)
        api.faults.chance = 0.25
        wait_for_all_reported(api, client, uids, 240, "not all were reported")
        took = time.monotonic() - began
        # A pod that was deleted before its status could be written has none: there is its Event.
        each_once(api, uids, status=True)
        left = {pod["metadata"]["uid"] for pod in api.cluster.pods.values()}
        assert left == {f"{uid}-next" for uid in uids} | {f"quiet-{i}" for i in range(20)}
        assert all(pod["status"]["phase"] == "Running" for pod in api.cluster.pods.values())
        met = {kind: n for kind, n in api.faults.met.items() if n}
        print(f"    120 evictions in {took:.0f} s, {len(api.journal)} requests, of which {sum(met.values())} met {met}; "
              f"killed {kills} times, token rotated twice, log {restless} times; "
              f"{len(api.effects('status'))} statuses, 120 deletions, 120 Events, none twice")


def test_what_it_cannot_write_down_it_tells_all_the_same():
    with cluster() as (api, client):
        api.cluster.add_pod("shop", "web", "u-web")
        client.start()
        client.evict("shop", "web", "u-web")
        client.wait(lambda: api.effects("event"), 10, "nothing was reported")
        client.wait(lambda: client.waiting() == 0, 10, "not finished")
        # A damaged state is set aside, and what comes then is reported.
        client.kill()
        client.state_file.write_text("{")
        api.cluster.add_pod("shop", "next", "u-next")
        client.start()
        client.evict("shop", "next", "u-next")
        client.wait(lambda: api.effects("gone") == ["u-web", "u-next"], 10, "the next was not reported")
        assert client.state_file.with_suffix(".json.damaged").exists()


def test_a_pod_evicted_again_before_it_went_is_one_event_that_counts():
    """Its deletion is refused; the kubelet starts it again, and it is evicted once more."""
    with cluster() as (api, client):
        api.cluster.add_pod("shop", "web", "u-web")
        api.faults.next = [None, "page"]
        client.start()
        client.evict("shop", "web", "u-web")
        client.wait(lambda: api.effects("event") == ["u-web"], 15, "no Event was made")
        assert not api.effects("gone"), "the deletion was refused"
        client.evict("shop", "web", "u-web")
        client.wait(lambda: api.effects("event counted") == ["u-web"] and client.waiting() == 0, 15, "it did not count on")
        event, = api.cluster.events.values()
        assert event["count"] == 2 and api.effects("gone") == ["u-web"], event


def conditions(api):
    return {each["type"]: each["status"] for each in api.cluster.nodes[NODE]["status"]["conditions"]}


def test_two_writers_of_conditions_and_taints_do_not_fight():
    with cluster(after="none", conditions=True, taints=True) as (api, client):
        node = api.cluster.nodes[NODE]
        node["spec"]["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}]
        ready = [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"}]
        api.cluster.write_as_kubelet(NODE, ready)
        client.write_node()
        client.start()
        client.wait(lambda: conditions(api).get("HeadroomMemoryPressure") == "False", 10, "no conditions were reported")
        client.write_node(MemoryPressure=True)
        # Another client changes the node between our reading and our writing: we read again.
        api.faults.next = [None, None, None, "409"]
        began = time.monotonic()
        client.wait(lambda: conditions(api)["HeadroomMemoryPressure"] == "True", 10, "the change was not reported")
        took = time.monotonic() - began
        client.wait(lambda: len(node["spec"]["taints"]) == 2, 15, "no taint was put")
        for _ in range(20):
            api.cluster.write_as_kubelet(NODE, ready)
            time.sleep(0.1)
        assert conditions(api) == {"Ready": "True", "MemoryPressure": "False", "HeadroomMemoryPressure": "True",
                                   "HeadroomDiskPressure": "False", "HeadroomPIDPressure": "False",
                                   "HeadroomCPUPressure": "False"}, conditions(api)
        writes = len(api.effects("conditions"))
        assert writes == 2, f"{writes} writes for two states"
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["dedicated", "headroom.io/memory-pressure"]
        assert api.effects("node event") == ["HeadroomHasInsufficientMemory"], api.effects("node event")
        client.write_node()
        client.wait(lambda: len(node["spec"]["taints"]) == 1, 15, "the taint was not taken off")
        print(f"    a change reported in {took * 1000:.0f} ms; beside 20 statuses of a kubelet's {writes} writes of ours")
        # Switched off, it takes back what is its own.
        client.kill()
        config = json.loads((client.folder / "headroom.yaml").read_text())
        config["headroom"]["kubernetes"]["api"] |= {"conditions": False, "taints": False, "afterEviction": "status"}
        (client.folder / "headroom.yaml").write_text(json.dumps(config))
        client.start()
        client.wait(lambda: set(conditions(api)) == {"Ready", "MemoryPressure"}, 10, "ours were not taken back")


def soft_taints(api):
    return sorted(each["key"] for each in api.cluster.nodes[NODE]["spec"].get("taints", []) if each["effect"] == "PreferNoSchedule")


def scheduling_writes(api):
    """The times of those that the API server was asked for, whatever became of them."""
    return [entry["at"] for entry in api.journal if entry["verb"] == "PATCH"]


def test_the_scheduler_is_advised_with_few_writes():
    readings = {"contention": {"cpu": 0.6, "memory": 0.0}, "hard_threshold": None, "shortage_seconds": None,
                "memory": {"capacity": 8 << 30, "left": 4 << 30, "growth": 0}}
    both = {"softTaints": True, "conditions": True, "statusAnnotation": True}
    with headroomd(readings) as page, cluster(after="none", listen=page, scheduling=both) as (api, client):
        node = api.cluster.nodes[NODE]
        node["spec"]["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}]
        api.cluster.write_as_kubelet(NODE, [{"type": "Ready", "status": "True"}])
        api.faults.next = [None, "409", "503"]
        client.start(takes_part=False)
        client.wait(lambda: soft_taints(api) == ["headroom.io/cpu-contention"], 90, "no taint was put")
        client.wait(lambda: conditions(api).get("HeadroomCPUContention") == "True", 30, "no condition was sent")
        assert conditions(api) == {"Ready": "True", "HeadroomMemoryContention": "False", "HeadroomCPUContention": "True",
                                   "HeadroomShortageExpected": "False"}, conditions(api)
        assert [each["key"] for each in node["spec"]["taints"]] == ["dedicated", "headroom.io/cpu-contention"]
        summary = json.loads(node["metadata"]["annotations"]["headroom.io/status"])
        assert summary["cpuContention"] == 0.6 and summary["memoryLeft"] == 0.5 and not summary["shortageExpected"], summary
        # A restart, and a headroomd that does not answer, change nothing.
        readings["at_ns"] = 0
        client.kill()
        client.start(takes_part=False)
        time.sleep(15)
        assert soft_taints(api) == ["headroom.io/cpu-contention"] and conditions(api)["HeadroomCPUContention"] == "True"
        assert "too old" in client.state("scheduling")["headroomdError"], client.state("scheduling")
        writes = scheduling_writes(api)
        gaps = [round(later - earlier, 1) for earlier, later in zip(writes, writes[1:])]
        assert len(writes) >= 3 and min(gaps) >= 9.9, gaps
        # Switched off, it takes back what is its own.
        client.kill()
        config = json.loads((client.folder / "headroom.yaml").read_text())
        config["headroom"]["kubernetes"]["scheduling"] = {}
        (client.folder / "headroom.yaml").write_text(json.dumps(config))
        client.start(takes_part=False)
        client.wait(lambda: conditions(api) == {"Ready": "True"}, 60, "the conditions were not taken back")
        assert not node["metadata"]["annotations"], node["metadata"]
        assert [each["key"] for each in node["spec"]["taints"]] == ["dedicated"], node["spec"]
        client.wait(lambda: not (client.folder / "state/scheduling.json").exists(), 10, "its state stayed")
        print(f"    {len(writes)} writes, at least {min(gaps)} s apart, two of them refused on purpose")


def test_batch_resources_are_taken_back_within_a_second():
    readings = {"contention": {"cpu": 0, "memory": 0.0}, "memory": {"capacity": 100 << 30, "left": 60 << 30, "batch": 52 << 30}}

    def offered(api):
        return api.cluster.nodes[NODE]["status"].get("allocatable", {}).get("headroom.io/batch-memory")
    with headroomd(readings) as page, cluster(after="none", listen=page, scheduling={"batchResources": True}) as (api, client):
        client.start(takes_part=False)
        client.wait(lambda: offered(api) == str(50 << 30), 30, "nothing was offered")
        client.kill(signal.SIGTERM)
        assert offered(api) == "0", "the end takes it back"
        client.start(takes_part=False)
        client.wait(lambda: offered(api) == str(50 << 30), 30, "nothing was offered after a restart")
        began = time.monotonic()
        readings["contention"] = {"cpu": 0, "memory": 0.5}
        client.wait(lambda: offered(api) == "0", 5, "it was not taken back")
        took = time.monotonic() - began
        assert took < 1.0, took
        # A kubelet registers its node again, and zeroes nothing that is zero.
        assert api.cluster.nodes[NODE]["status"]["capacity"] == {"headroom.io/batch-memory": "0", "headroom.io/batch-cpu": "0"}
        print(f"    taken back {took * 1000:.0f} ms after the contention")


def ask_extender(port, verb, body):
    """(the answer, milliseconds)"""
    began = time.monotonic()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{verb}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer), (time.monotonic() - began) * 1000


def test_the_extender_scores_the_nodes_that_the_api_server_has():
    port = free_port()
    with cluster(after="none", extender={"listen": f"127.0.0.1:{port}"}) as (api, client):
        def annotate(name, **values):
            with api.cluster.lock:
                api.cluster.annotate_node((name,), {"metadata": {"annotations": {"headroom.io/status": node_summary(**values)}}})
        for name in ("idle", "busy", "short", "silent"):
            api.cluster.add_node(name)
        annotate("idle", cpuContention=0, memoryContention=0, memoryLeft=0.8)
        annotate("busy", cpuContention=0.2, memoryContention=0, memoryLeft=0.5)
        api.faults.next = ["503"]
        names = ["idle", "busy", "short", "silent", "never-seen"]
        args = {"Pod": {"metadata": {"name": "web"}}, "Nodes": None, "NodeNames": names}
        client.start_extender(port)

        def scores():
            return {each["Host"]: each["Score"] for each in ask_extender(port, "prioritize", args)[0]}
        assert scores() == {"idle": 10, "busy": 6, "short": 5, "silent": 5, "never-seen": 5}, scores()
        assert ask_extender(port, "filter", args)[0] == {"FailedNodes": {}, "NodeNames": names}
        # What changes is seen through the watch.
        annotate("short", hardThreshold="memory.available", memoryLeft=0)
        client.wait(lambda: scores()["short"] == 0, 5, "a change was not seen")
        answer, _ = ask_extender(port, "filter", args)
        assert list(answer["FailedNodes"]) == ["short"] and answer["NodeNames"] == ["idle", "busy", "silent", "never-seen"], answer
        # An API server that is gone, and 5,000 nodes.
        api.stop()
        assert scores()["idle"] == 10, "what is known stays"
        many = args | {"NodeNames": names + [f"node-{i}" for i in range(5000)]}
        took = sorted(ask_extender(port, "prioritize", many)[1] for _ in range(5))
        assert took[2] < 200, took
        api.start()
        annotate("idle", cpuContention=1, memoryLeft=0)
        client.wait(lambda: scores()["idle"] == 0, 20, "it did not come back to the API server")
        print(f"    5,005 nodes scored in {took[2]:.0f} ms; the httpTimeout of scheduler-extender.yaml is 200 ms")


def test_metrics_are_for_clients_that_the_api_server_allows():
    port = free_port()
    with headroomd() as page:
        with cluster(listen=page, metrics={"listen": f"127.0.0.1:{port}"}) as (api, client):
            api.cluster.users = {"prometheus": ("system:serviceaccount:monitoring:prometheus", ["/metrics", "/metrics/cadvisor"]),
                                 "other": ("jane", [])}
            client.start()
            client.wait(lambda: client.state("metrics"), 20, "no metrics are served")
            assert client.state("metrics") == {"listen": f"127.0.0.1:{port}", "certificate": "self-signed"}, client.state("metrics")
            for path in ("/metrics", "/metrics/cadvisor"):
                assert scrape(port, path, "prometheus") == (200, f"of {path}\n")
            assert scrape(port, "/metrics/resource", "prometheus")[0] == 403
            assert scrape(port, "/metrics", "other")[0] == 403
            assert scrape(port, "/metrics", "unknown")[0] == 401
            asked = len(api.journal)
            assert scrape(port, "/metrics", "prometheus")[0] == 200 and len(api.journal) == asked, "it is known already"
            api.stop()
            assert scrape(port, "/metrics", "prometheus")[0] == 200, "a short outage stops no scrape"
            assert scrape(port, "/metrics", "new")[0] == 503, "what cannot be asked is not allowed"
            api.start()


def test_a_server_that_is_not_trusted_gets_nothing():
    with cluster() as (api, client):
        other = client.folder / "other"
        other.mkdir()
        make_certificate(other)
        (client.folder / "apiserver.crt").write_bytes((other / "apiserver.crt").read_bytes())
        client.start()
        client.evict("shop", "web", "u-web")
        client.wait(lambda: "error" in client.state(), 10, "it saw no trouble")
        assert not api.journal, api.journal
        assert "certificate" in client.state()["error"].lower() or "SSL" in client.state()["error"], client.state()


def test_manifests_build_and_fit_the_published_schemas():
    print("    " + manifests.check())


def test_the_chart_has_the_objects_of_kustomize():
    print(f"    {chart.check()}")


def test_what_was_sent_fits_the_published_schemas():
    assert len(said) > 100, "the tests before this one said too little"
    print("    " + manifests.check_bodies(said))


def fake_release(folder: Path, version: str, names) -> Path:
    """A folder of programs that only say their version, as a kubelet does."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho Kubernetes v{version}\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_lab_takes_a_release_in_each_layout():
    with tempfile.TemporaryDirectory(prefix="headroom-release-") as place:
        others = {}
        for _, variable, names in kubernetes_release.OTHERS.values():
            others[variable] = str(fake_release(Path(place, variable), "0", names))
        for layout in kubernetes_release.PLACES:
            given = Path(place, "release-" + layout.replace("/", "-"))
            fake_release(given / layout, "1.36.2", kubernetes_release.COMPONENTS)
            found = kubernetes_release.find({"KUBERNETES_BIN": str(given), **others})
            assert (found.version, found.kernel) == ("1.36.2", "6.12"), found
            names = {each.name for each in found.programs}
            assert {"kubelet", "kubectl", "kube-apiserver", "etcd", "ctr", "runc"} <= names and len(names) == 10, names
            assert all(each.is_file() for each in found.programs), found


def test_the_lab_refuses_a_release_that_it_cannot_run():
    every = kubernetes_release.COMPONENTS
    with tempfile.TemporaryDirectory(prefix="headroom-release-") as place:
        fake_release(Path(place, "old"), "1.26.9", every)
        fake_release(Path(place, "part"), "1.36.2", [name for name in every if name != "kubelet"])
        whole = fake_release(Path(place, "whole"), "1.36.2", every)
        refused = {
            "1.26.9 is older than 1.27": {"KUBERNETES_BIN": f"{place}/old"},
            "no kubelet in": {"KUBERNETES_BIN": f"{place}/part"},
            "no kube-apiserver in": {"KUBERNETES_BIN": place},
            "ETCD_BIN: no etcd in": {"KUBERNETES_BIN": str(whole), "ETCD_BIN": place},
        }
        for reason, environment in refused.items():
            try:
                kubernetes_release.find(environment)
                raise AssertionError(f"taken: {environment}")
            except BuildError as error:
                assert reason in str(error) and "\n" not in str(error), error


def run() -> list[tuple[str, str, str]]:
    """[(name, status, reason)]"""
    if not PROGRAM.exists():
        return [("(headroom-kube)", "failed", f"no {PROGRAM}: make all")]
    return named_tests.run_all(globals())
