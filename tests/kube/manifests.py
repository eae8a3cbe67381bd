# SPDX-License-Identifier: Apache-2.0
"""The manifests under kubernetes/: built by kubectl, taken by its dry run, judged by the published schemas, and held
against what the programs are and do: the unit's capabilities, the configuration's own check, the requests that are made."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests/vm"))

from machine import cache  # noqa: E402
from machine.kubectl import kubectl  # noqa: E402

KUBERNETES = ROOT / "kubernetes"
OPERATOR = "../tests/kube/operator"  # a component, and what it is added to
BUILT = ("base", "overlays/kubeadm", "overlays/enforce", "overlays/everything", OPERATOR)
# kind → (path of its group, resource, namespaced, schema)
KINDS = {
    "Namespace": ("/api/v1", "namespaces", False, "IoK8sApiCoreV1Namespace"),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True, "IoK8sApiCoreV1ServiceAccount"),
    "Secret": ("/api/v1", "secrets", True, "IoK8sApiCoreV1Secret"),
    "ConfigMap": ("/api/v1", "configmaps", True, "IoK8sApiCoreV1ConfigMap"),
    "ResourceQuota": ("/api/v1", "resourcequotas", True, "IoK8sApiCoreV1ResourceQuota"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True, "IoK8sApiAppsV1DaemonSet"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False, "IoK8sApiRbacV1ClusterRole"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False,
                           "IoK8sApiRbacV1ClusterRoleBinding"),
    "PodMonitor": ("/apis/monitoring.coreos.com/v1", "podmonitors", True,
                   "ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1PodMonitor"),
    "PrometheusRule": ("/apis/monitoring.coreos.com/v1", "prometheusrules", True,
                       "ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1PrometheusRule"),
}


def modules() -> Path:
    """The published schemas, as package-lock.json has them; beside the tree."""
    recipe = cache.digest(HERE / "package.json", HERE / "package-lock.json")
    return cache.obtain("kube-modules", recipe, _install) / "node_modules"


def _install(out: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, out)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=out, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, "npm cannot install kubernetes-models: " + done.stdout.strip()[-300:]


def wrongs(values: list[dict]) -> list[str]:
    """Of [{where, schema, value}], what the published schemas do not have."""
    done = subprocess.run(["node", HERE / "validate.mjs"], input=json.dumps(values), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "KUBE_MODULES": str(modules())})
    assert done.returncode == 0, done.stderr[-3000:]
    return [f"{row['where']}: {wrong}" for row in json.loads(done.stdout) for wrong in row["wrong"]]


def built(folder: str) -> tuple[str, list[dict]]:
    done = kubectl("kustomize", KUBERNETES / folder)
    assert done.returncode == 0 and not done.stderr, (folder, done.stderr)
    as_json = kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", "--server", discovery(),
                      data=done.stdout)
    assert as_json.returncode == 0, (folder, as_json.stderr)
    # One JSON document after the other, or a List.
    decoder, text, objects = json.JSONDecoder(), as_json.stdout.strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        objects += value["items"] if value["kind"] == "List" else [value]
        text = text[end:].strip()
    return done.stdout, objects


class Discovery(http.server.BaseHTTPRequestHandler):
    """As much of an API server as kubectl wants for a dry run of the client's: which kinds there are."""

    def do_GET(self):
        groups = sorted({path for path, *_ in KINDS.values() if path.startswith("/apis/")})
        names = [path.split("/")[2:] for path in groups]
        answers = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": name, "versions": [{"groupVersion": f"{name}/{version}", "version": version}],
                 "preferredVersion": {"groupVersion": f"{name}/{version}", "version": version}} for name, version in names]}}
        for path, *_ in KINDS.values():
            answers[path] = {"kind": "APIResourceList", "groupVersion": path.split("/", 2)[2].removeprefix("apis/"),
                             "resources": [{"name": resource, "singularName": "", "namespaced": namespaced, "kind": kind,
                                            "verbs": ["create", "get", "patch"]}
                                           for kind, (at, resource, namespaced, _) in KINDS.items() if at == path]}
        body = json.dumps(answers.get(self.path.split("?")[0], {})).encode()
        self.send_response(200 if self.path.split("?")[0] in answers else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


_server = None


def discovery() -> str:
    global _server
    if _server is None:
        _server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Discovery)
        _server.daemon_threads = True
        threading.Thread(target=_server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{_server.server_address[1]}"


def rules(objects) -> set[tuple[str, str]]:
    """{(resource, verb)} that the roles allow."""
    return {(resource, verb) for each in objects if each["kind"] == "ClusterRole" for rule in each["rules"]
            for resource in rule.get("resources", []) for verb in rule["verbs"]}


def check_capabilities(daemon_set):
    unit = (ROOT / "systemd/headroomd.service").read_text()
    wanted = {word.removeprefix("CAP_") for word in re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].split()}
    wanted.add("IPC_LOCK")  # the unit has LimitMEMLOCK, which a pod cannot have
    daemon, client = daemon_set["spec"]["template"]["spec"]["containers"]
    capabilities = daemon["securityContext"]["capabilities"]
    assert set(capabilities["add"]) == wanted and capabilities["drop"] == ["ALL"], (capabilities, wanted)
    assert client["securityContext"]["capabilities"] == {"drop": ["ALL"]}, client
    assert "privileged" not in json.dumps(daemon_set), "none of them is"
    assert all(each["securityContext"]["readOnlyRootFilesystem"] for each in (daemon, client))
    mounted = {each["name"] for each in daemon["volumeMounts"]}
    assert "token" not in mounted and not daemon_set["spec"]["template"]["spec"]["automountServiceAccountToken"]


def check_configuration(objects):
    """The ConfigMap is what headroomd and headroom-kube accept, and it is the one the DaemonSet mounts."""
    config, = (each for each in objects if each["kind"] == "ConfigMap")
    for daemon_set in (each for each in objects if each["kind"] == "DaemonSet"):
        volumes = daemon_set["spec"]["template"]["spec"]["volumes"]
        assert {"name": "configuration", "configMap": {"name": config["metadata"]["name"]}} in volumes, volumes
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config["data"]["headroom.yaml"])
        file.flush()
        done = subprocess.run([ROOT / "build/headroom-kube", "--config", file.name, "--check-config"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout


def check_names(objects):
    """Everything is in the namespace, and every binding binds what there is."""
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for each in objects:
        namespaced = KINDS[each["kind"]][2]
        assert not namespaced or each["metadata"].get("namespace") == "headroom-system", each["metadata"]
        if each["kind"] == "ClusterRoleBinding":
            assert ("ClusterRole", each["roleRef"]["name"]) in there, each["roleRef"]
            subject, = each["subjects"]
            assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", "headroom-system"), subject
            assert ("ServiceAccount", subject["name"]) in there, subject
            others = {"headroom-metrics-reader", "headroom-extender"}
            assert (subject["name"] == "headroom") == (each["metadata"]["name"] not in others), each


def check_operator(objects):
    """The monitor selects the DaemonSet's pods and the port where headroom-kube serves HTTPS, while headroomd stays on the
    loopback; it sends a token that may read that path and nothing else; job and instance are what the alerts expect."""
    template = only(objects, "DaemonSet")["spec"]["template"]
    monitor = only(objects, "PodMonitor")["spec"]
    wanted = monitor["selector"]["matchLabels"]
    assert wanted.items() <= template["metadata"]["labels"].items(), wanted
    assert template["metadata"]["labels"][monitor["jobLabel"]] == "headroom", monitor
    daemon, client = template["spec"]["containers"]
    endpoint, = monitor["podMetricsEndpoints"]
    port, = (each for each in client["ports"] if each["name"] == endpoint["port"])
    assert "hostIP" not in port and f"--metrics-listen=0.0.0.0:{port['containerPort']}" in client["command"], client
    assert [each["hostIP"] for each in daemon["ports"]] == ["127.0.0.1"] and "--listen" not in str(daemon["command"]), daemon
    assert endpoint["scheme"] == "https", endpoint
    secret, credentials = only(objects, "Secret"), endpoint["authorization"]["credentials"]
    assert credentials == {"name": secret["metadata"]["name"], "key": "token"}, credentials
    account = secret["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    bound = {each["roleRef"]["name"] for each in objects if each["kind"] == "ClusterRoleBinding"
             if each["subjects"][0]["name"] == account}
    reader, = (each for each in objects if each["kind"] == "ClusterRole" and each["metadata"]["name"] in bound)
    assert [set(each) for each in reader["rules"]] == [{"nonResourceURLs", "verbs"}], reader
    assert endpoint["path"] in reader["rules"][0]["nonResourceURLs"] and reader["rules"][0]["verbs"] == ["get"], reader
    assert {each["targetLabel"] for each in endpoint["relabelings"]} == {"node", "instance"}, endpoint
    alerts = {rule.get("alert") for group in only(objects, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]}
    assert "HeadroomKernelOOMKill" in alerts, alerts


def check_extender(objects):
    """The scheduler's configuration finds the extender, whose account can change nothing and whose container is not root's."""
    scheduler = yaml.safe_load((KUBERNETES / "scheduler-extender.yaml").read_text())
    assert (scheduler["apiVersion"], scheduler["kind"]) == ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration")
    extender, = scheduler["extenders"]
    # k8s.io/kube-scheduler/config/v1, Extender; a key that is not there is an error to kube-scheduler.
    known = {"urlPrefix": str, "filterVerb": str, "prioritizeVerb": str, "weight": int, "nodeCacheCapable": bool,
             "httpTimeout": str, "ignorable": bool}
    assert {key: type(value) for key, value in extender.items()} == known, extender
    assert (extender["filterVerb"], extender["prioritizeVerb"]) == ("filter", "prioritize") and extender["ignorable"]
    template = named(objects, "DaemonSet", "headroom-extender")["spec"]["template"]["spec"]
    container, = template["containers"]
    port, = container["ports"]
    assert extender["urlPrefix"] == f"http://{port['hostIP']}:{port['containerPort']}" and template["hostNetwork"], port
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]} and container["securityContext"]["runAsNonRoot"]
    assert container["command"][:2] == ["/usr/sbin/headroom-kube", "extender"], container["command"]
    role = named(objects, "ClusterRole", "headroom-extender")
    assert [(each["resources"], each["verbs"]) for each in role["rules"]] == [(["nodes"], ["list", "watch"])], role


def named(objects, kind: str, name: str) -> dict:
    found, = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def only(objects, kind: str) -> dict:
    found, = (each for each in objects if each["kind"] == kind)
    return found


def check() -> str:
    values, known = [], {}
    for folder in BUILT:
        _, objects = built(folder)
        known[folder] = objects
        for each in objects:
            path, *_, schema = KINDS[each["kind"]]
            version = path.removeprefix("/apis/").removeprefix("/api/")
            assert each["apiVersion"] == version, each
            values.append({"where": f"{folder} {each['kind']} {each['metadata']['name']}", "schema": schema, "value": each})
        check_names(objects)
        check_configuration(objects)
        check_capabilities(named(objects, "DaemonSet", "headroom"))
    check_operator(known[OPERATOR])
    check_extender(known["overlays/everything"])
    reviews = {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    assert rules(known[OPERATOR]) - rules(known["overlays/enforce"]) == reviews, "serving metrics needs nothing else"
    assert not wrongs(values), wrongs(values)
    # The schemas do object to what is wrong.
    bad = json.loads(json.dumps(values[-1]))
    bad["value"]["metdata"] = {}
    assert wrongs([bad]), "the validator lets anything pass"
    assert rules(known["base"]) == {("nodes/pods", "get"), ("nodes/configz", "get")}, "looking needs nothing else"
    return f"{len(values)} objects of {len(BUILT)} builds"


def body_of(entry) -> dict | None:
    """Where a body belongs in the schemas; of patches, the part that is patched."""
    verb, path, body = entry["verb"], entry["path"].split("?")[0], json.loads(entry["body"])
    last = path.rsplit("/", 1)[-1]
    where = f"{verb} {path}"
    if verb == "PATCH" and "/pods/" in path:
        return {"where": where, "schema": "IoK8sApiCoreV1PodStatus", "value": body["status"]}
    if verb == "PATCH" and "/nodes/" in path and last == "status":
        return {"where": where, "schema": "IoK8sApiCoreV1NodeStatus", "value": body.get("status", {})}
    if verb == "PATCH" and "/nodes/" in path and "spec" not in body:
        # Null removes an annotation.
        annotations = {key: value for key, value in body["metadata"]["annotations"].items() if value is not None}
        return {"where": where, "schema": "IoK8sApimachineryPkgApisMetaV1ObjectMeta", "value": {"annotations": annotations}}
    if verb == "PATCH" and "/nodes/" in path:
        return {"where": where, "schema": "IoK8sApiCoreV1NodeSpec", "value": body["spec"]}
    if verb == "DELETE":
        return {"where": where, "schema": "IoK8sApimachineryPkgApisMetaV1DeleteOptions", "value": body}
    if last in ("tokenreviews", "subjectaccessreviews"):
        group, kind = ("Authentication", "TokenReview") if last == "tokenreviews" else ("Authorization", "SubjectAccessReview")
        return {"where": where, "schema": f"IoK8sApi{group}V1{kind}", "value": body}
    if last == "eviction":
        kind = "Policy" + body["apiVersion"].split("/")[1].replace("v1", "V1")
        return {"where": where, "schema": f"IoK8sApi{kind}Eviction", "value": body}
    if verb == "POST" and last == "events":
        return {"where": where, "schema": "IoK8sApiCoreV1Event", "value": body}
    return None  # an Event's count


def right_of(entry) -> tuple[str, str]:
    """(resource, verb), as RBAC has it."""
    parts = re.sub(r"^/(api|apis/[^/]+)/v1/", "", entry["path"].split("?")[0]).split("/")
    parts = parts[2:] if parts[0] == "namespaces" else parts
    verb = {"GET": "get", "PATCH": "patch", "DELETE": "delete", "POST": "create"}[entry["verb"]]
    if verb == "get" and parts == ["nodes"]:
        verb = "watch" if "watch=1" in entry["path"] else "list"
    return "/".join([parts[0], *parts[2:3]]), verb


def check_bodies(entries) -> str:
    values = [value for entry in entries if entry["body"] for value in [body_of(entry)] if value]
    assert not wrongs(values), wrongs(values)[:10]
    used = {right_of(entry) for entry in entries}
    granted = rules(built("overlays/everything")[1]) | rules(built(OPERATOR)[1])
    granted -= {("nodes/pods", "get"), ("nodes/configz", "get"), ("nodes/proxy", "get")}
    assert used == granted, f"not allowed: {used - granted}; allowed and never used: {granted - used}"
    return f"{len(values)} bodies of {len({value['schema'] for value in values})} kinds; rights used are rights granted: {len(used)}"
