#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An API server as headroom-kube meets it: pods, events and nodes over TLS, strict, and failing on demand.

It checks path, verb, content type, body, resource version and token of whatever is asked, and notes a complaint where a
real one would mind. What it is asked to do it does once: the journal says which requests had an effect.

    apiserver_double.py --port 6443 --folder DIR     makes a certificate and a token there, and leaves its journal there
"""

import argparse
import contextlib
import http.server
import json
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON = "application/json"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Time(str):
    """RFC 3339 in whole seconds, as metav1.Time is."""


def misfit(value, shape, where="") -> list[str]:
    """What of the value a published schema would not have. A shape: a type, {key: shape} with "key?" for optional
    ones, [shape], or a set of the values there may be."""
    if shape is Time:
        return [] if isinstance(value, str) and RFC3339.fullmatch(value) else [f"{where}: {value!r} is no time"]
    if isinstance(shape, set):
        return [] if value in shape else [f"{where}: {value!r} is none of {sorted(shape)}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where}: expected a list"]
        return [wrong for i, each in enumerate(value) for wrong in misfit(each, shape[0], f"{where}[{i}]")]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where}: expected an object"]
        keys = {key.rstrip("?"): inner for key, inner in shape.items()}
        wrong = [f"{where}.{key}: not known" for key in value if key not in keys]
        wrong += [f"{where}.{key}: missing" for key in shape if not key.endswith("?") and key not in value]
        return wrong + [each for key in value if key in keys for each in misfit(value[key], keys[key], f"{where}.{key}")]
    if isinstance(shape, tuple):
        return [] if isinstance(value, shape) else [f"{where}: {value!r} is of none of {shape}"]
    fits = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
    return [] if fits else [f"{where}: {value!r} is no {shape.__name__}"]


POD_CONDITION = {"type": {"DisruptionTarget"}, "status": {"True", "False", "Unknown"}, "lastTransitionTime": Time,
                 "reason": {"TerminationByKubelet", "DeletionByTaintManager"}, "message": str}
POD_STATUS = {"metadata": {"uid": str},
              "status": {"phase": {"Failed"}, "reason": {"Evicted"}, "message": str, "conditions?": [POD_CONDITION]}}
DELETE_OPTIONS = {"apiVersion": {"v1"}, "kind": {"DeleteOptions"}, "gracePeriodSeconds": int,
                  "preconditions": {"uid": str}}
EVICTION = {"apiVersion": {"policy/v1", "policy/v1beta1"}, "kind": {"Eviction"},
            "metadata": {"name": str, "namespace": str}, "deleteOptions": DELETE_OPTIONS}
EVENT = {"apiVersion": {"v1"}, "kind": {"Event"},
         "metadata": {"name": str, "namespace": str, "annotations": dict},
         "involvedObject": {"apiVersion": {"v1"}, "kind": {"Pod"}, "namespace": str, "name": str, "uid": str},
         "type": {"Warning"}, "reason": {"Evicted"}, "message": str, "source": {"component": str, "host": str},
         "firstTimestamp": Time, "lastTimestamp": Time, "count": int,
         "reportingComponent": str, "reportingInstance": str}
NODE_EVENT = EVENT | {"metadata": {"generateName": str, "namespace": {"default"}},
                      "involvedObject": {"apiVersion": {"v1"}, "kind": {"Node"}, "name": str, "uid": str},
                      "type": {"Warning", "Normal"}, "reason": str}
EVENT_PATCH = {"message": str, "lastTimestamp": Time, "count": int}
NODE_CONDITION = {"type": str, "status": {"True", "False", "Unknown"}, "lastHeartbeatTime": Time,
                  "lastTransitionTime": Time, "reason": str, "message": str}
BATCH = {"headroom.io/batch-memory": str, "headroom.io/batch-cpu": str}
NODE_APPLY = {"apiVersion": {"v1"}, "kind": {"Node"}, "metadata": {"name": str},
              "status?": {"conditions?": [NODE_CONDITION], "capacity?": BATCH, "allocatable?": BATCH}}
NODE_TAINTS = {"metadata": {"resourceVersion": str},
               "spec": {"taints": [{"key": str, "value?": str, "timeAdded?": Time,
                                    "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"}}]}}
NODE_ANNOTATION = {"metadata": {"annotations": {"headroom.io/status": (str, type(None))}}}
TOKEN_REVIEW = {"apiVersion": {"authentication.k8s.io/v1"}, "kind": {"TokenReview"}, "spec": {"token": str}}
ACCESS_REVIEW = {"apiVersion": {"authorization.k8s.io/v1"}, "kind": {"SubjectAccessReview"},
                 "spec": {"nonResourceAttributes": {"path": str, "verb": {"get"}}, "user": str, "uid?": str,
                          "groups?": [str], "extra?": dict}}

POD = r"/api/v1/namespaces/([a-z0-9.-]+)/pods/([a-z0-9.-]+)"
EVENTS = r"/api/v1/namespaces/([a-z0-9.-]+)/events"
NODE = r"/api/v1/nodes/([a-z0-9.-]+)"
# verb, path, content type, body, query, who answers
ROUTES = [
    ("GET", POD, None, None, {}, "get_pod"),
    ("PATCH", POD + "/status", STRATEGIC, POD_STATUS, {"fieldManager": "headroom"}, "patch_pod_status"),
    ("DELETE", POD, JSON, DELETE_OPTIONS, {}, "delete_pod"),
    ("POST", POD + "/eviction", JSON, EVICTION, {}, "evict_pod"),
    # Of an object without a namespace; no pod of the tests is in this one.
    ("POST", r"/api/v1/namespaces/default/events", JSON, NODE_EVENT, {"fieldManager": "headroom"}, "create_node_event"),
    ("POST", EVENTS, JSON, EVENT, {"fieldManager": "headroom"}, "create_event"),
    ("PATCH", EVENTS + r"/([a-z0-9.-]+)", MERGE, EVENT_PATCH, {"fieldManager": "headroom"}, "patch_event"),
    ("GET", NODE, None, None, {}, "get_node"),
    ("PATCH", NODE, MERGE, NODE_ANNOTATION, {"fieldManager": "headroom-scheduling"}, "annotate_node"),
    ("PATCH", NODE, MERGE, NODE_TAINTS, {"fieldManager": "headroom"}, "patch_node"),
    ("GET", r"/api/v1/nodes", None, None, {"limit": "500"}, "list_nodes"),
    ("PATCH", NODE + "/status", APPLY, NODE_APPLY, {"fieldManager": "headroom-scheduling", "force": "true"}, "apply_scheduling"),
    ("PATCH", NODE + "/status", APPLY, NODE_APPLY, {"fieldManager": "headroom", "force": "true"}, "apply_node_status"),
    ("POST", r"/apis/authentication\.k8s\.io/v1/tokenreviews", JSON, TOKEN_REVIEW, {}, "review_token"),
    ("POST", r"/apis/authorization\.k8s\.io/v1/subjectaccessreviews", JSON, ACCESS_REVIEW, {}, "review_access"),
]


class Refusal(Exception):
    """A metav1.Status that is no success."""

    def __init__(self, code, reason, message, kind="", name="", headers=()):
        super().__init__(message)
        self.code, self.headers = code, dict(headers)
        self.body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                     "reason": reason, "details": {"name": name, "kind": kind}, "code": code}


class Cluster:
    """What the server holds. Every change is in `effects`: (seconds, what, uid or name)."""

    def __init__(self):
        self.lock = threading.RLock()
        self.version = 100
        self.pods, self.events, self.nodes = {}, {}, {}
        self.owners = {}  # node → {condition type: manager}
        self.effects = []
        self.budgets = {}  # namespace/name → how often an eviction is refused
        self.users = {}  # bearer token → (user, the paths that its roles allow)
        self.retry_after = 0
        self.replace = False  # who goes is replaced by another of the same name, as a StatefulSet does
        self.oldest_policy = "policy/v1"
        self.began, self.began_at = time.monotonic(), time.time()

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    def add_pod(self, namespace, name, uid):
        with self.lock:
            self.pods[namespace, name] = {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": self.next_version()},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}

    def add_node(self, name):
        with self.lock:
            self.nodes[name] = {"apiVersion": "v1", "kind": "Node",
                                "metadata": {"name": name, "resourceVersion": self.next_version()},
                                "spec": {}, "status": {"conditions": []}}
            self.owners[name] = {}

    def note(self, what, uid):
        self.effects.append((round(time.monotonic() - self.began, 3), what, uid))

    def pod(self, namespace, name, uid=None):
        pod = self.pods.get((namespace, name))
        if pod is None:
            raise Refusal(404, "NotFound", f'pods "{name}" not found', "pods", name)
        if uid is not None and pod["metadata"]["uid"] != uid:
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on pods "{name}": Precondition failed: UID in '
                          f'precondition: {uid}, UID in object meta: {pod["metadata"]["uid"]}', "pods", name)
        return pod

    def get_pod(self, where, _body):
        return 200, self.pod(*where)

    def patch_pod_status(self, where, body):
        pod = self.pod(*where, body["metadata"]["uid"])
        before = json.dumps(pod["status"], sort_keys=True)
        conditions = {each["type"]: each for each in pod["status"]["conditions"] + body["status"].get("conditions", [])}
        pod["status"] |= body["status"] | {"conditions": list(conditions.values())}
        if json.dumps(pod["status"], sort_keys=True) != before:
            pod["metadata"]["resourceVersion"] = self.next_version()
            self.note("status", pod["metadata"]["uid"])
        return 200, pod

    def take_away(self, where):
        gone = self.pods.pop(where)
        self.note("gone", gone["metadata"]["uid"])
        if self.replace:
            self.add_pod(*where, gone["metadata"]["uid"] + "-next")
        return gone

    def delete_pod(self, where, body):
        self.pod(*where, body["preconditions"]["uid"])
        return 200, self.take_away(where)

    def evict_pod(self, where, body):
        if body["apiVersion"] != self.oldest_policy and self.oldest_policy == "policy/v1beta1":
            raise Refusal(400, "BadRequest", 'no kind "Eviction" is registered for version "policy/v1"')
        assert (body["metadata"]["namespace"], body["metadata"]["name"]) == where
        pod = self.pod(*where, body["deleteOptions"]["preconditions"]["uid"])
        # A pod that has failed already is outside its budget.
        refused = self.budgets.get("/".join(where), 0)
        if refused and pod["status"]["phase"] != "Failed":
            self.budgets["/".join(where)] = refused - 1
            raise Refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                          headers={"Retry-After": str(self.retry_after)})
        self.take_away(where)
        return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def create_event(self, where, body):
        namespace, = where
        if (body["metadata"]["namespace"], body["involvedObject"]["namespace"]) != (namespace, namespace):
            raise Refusal(400, "BadRequest", "the namespace of the provided object does not match the one of the request")
        key = namespace, body["metadata"]["name"]
        if len(key[1]) > 253:
            raise Refusal(422, "Invalid", "metadata.name: must be no more than 253 characters", "Event", key[1])
        if key in self.events:
            raise Refusal(409, "AlreadyExists", f'events "{key[1]}" already exists', "events", key[1])
        self.events[key] = body
        self.note("event", body["involvedObject"]["uid"])
        return 201, body

    def create_node_event(self, _where, body):
        self.node(body["involvedObject"]["name"])
        self.events["default", f"{body['metadata']['generateName']}{len(self.events):05}"] = body
        self.note("node event", body["reason"])
        return 201, body

    def patch_event(self, where, body):
        if where not in self.events:
            raise Refusal(404, "NotFound", f'events "{where[1]}" not found', "events", where[1])
        self.events[where] |= body
        self.note("event counted", self.events[where]["involvedObject"]["uid"])
        return 200, self.events[where]

    def node(self, name):
        if name not in self.nodes:
            raise Refusal(404, "NotFound", f'nodes "{name}" not found', "nodes", name)
        return self.nodes[name]

    def get_node(self, where, _body):
        return 200, self.node(*where)

    def changed(self, node, what):
        node["metadata"]["resourceVersion"] = self.next_version()
        self.note(what, node["metadata"]["name"])

    def patch_node(self, where, body):
        node = self.node(*where)
        if body["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on nodes "{where[0]}": the object has been '
                          "modified; please apply your changes to the latest version and try again", "nodes", where[0])
        node["spec"]["taints"] = body["spec"]["taints"]
        self.changed(node, "taints")
        return 200, node

    def annotate_node(self, where, body):
        node = self.node(*where)
        annotations = node["metadata"].setdefault("annotations", {}) | body["metadata"]["annotations"]
        node["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
        self.changed(node, "annotation")
        return 200, node

    def list_nodes(self, _where, _body):
        return 200, {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": str(self.version)},
                     "items": [self.metadata(node) for node in self.nodes.values()]}

    @staticmethod
    def metadata(node):
        return {"kind": "PartialObjectMetadata", "metadata": node["metadata"]}

    def changed_since(self, version: int) -> list[dict]:
        """The events of a watch from there, oldest first."""
        with self.lock:
            changed = [node for node in self.nodes.values() if int(node["metadata"]["resourceVersion"]) > version]
            return [{"type": "MODIFIED", "object": json.loads(json.dumps(self.metadata(node)))}
                    for node in sorted(changed, key=lambda node: int(node["metadata"]["resourceVersion"]))]

    def apply_node_status(self, where, body, manager="headroom"):
        """Server-side apply: conditions are a map by type, each owned by who applied it last."""
        node, owners = self.node(*where), self.owners[where[0]]
        applied = {each["type"]: each for each in body.get("status", {}).get("conditions", [])}
        left = {kind for kind, owner in owners.items() if owner == manager} - set(applied)
        kept = {each["type"]: each for each in node["status"]["conditions"] if each["type"] not in left}
        node["status"]["conditions"] = list((kept | applied).values())
        for kind in left:
            del owners[kind]
        owners |= {kind: manager for kind in applied}
        for part in ("capacity", "allocatable"):
            there = {key: value for key, value in node["status"].get(part, {}).items()
                     if manager != "headroom-scheduling" or not key.startswith("headroom.io/")}
            node["status"][part] = there | body.get("status", {}).get(part, {})
        self.changed(node, "conditions")
        return 200, node

    def apply_scheduling(self, where, body):
        return self.apply_node_status(where, body, manager="headroom-scheduling")

    def review_token(self, _where, body):
        name, _ = self.users.get(body["spec"]["token"], (None, ()))
        status = {"authenticated": True, "user": {"username": name, "groups": ["system:authenticated"]}} if name else {}
        return 201, body | {"status": status}

    def review_access(self, _where, body):
        spec = body["spec"]
        allowed = any(spec["user"] == name and spec["nonResourceAttributes"]["path"] in paths for name, paths in self.users.values())
        return 201, body | {"status": {"allowed": allowed}}

    def write_as_kubelet(self, name, conditions):
        """A kubelet's status: its own conditions in place, whatever else there is left alone."""
        with self.lock:
            node = self.node(name)
            merged = {each["type"]: each for each in node["status"]["conditions"]} | {each["type"]: each for each in conditions}
            node["status"]["conditions"] = list(merged.values())
            node["metadata"]["resourceVersion"] = self.next_version()


# What may go wrong with a request. "lost": it is done, and the answer is not heard; "late": likewise, after the client's
# patience; "slow": nothing is done, and the answer comes after it.
FAULTS = ("429", "409", "500", "503", "401", "reset", "slow", "lost", "late", "half", "page")


class Faults:
    """On a script: `next` are met by the next requests, then each request meets one of `kinds` with `chance`."""

    def __init__(self, seed=1):
        self.dice, self.next, self.chance, self.kinds = random.Random(seed), [], 0.0, FAULTS
        self.patience = 2.0  # seconds; more than the client has
        self.met = dict.fromkeys(FAULTS, 0)
        self.lock = threading.Lock()

    def draw(self):
        with self.lock:
            fault = None
            if self.next:
                fault = self.next.pop(0)
            elif self.dice.random() < self.chance:
                fault = self.dice.choice(self.kinds)
            if fault:
                self.met[fault] += 1
            return fault


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.server.owner.connections.add(self.connection)

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()

    def answer_any(self):
        api = self.server.owner
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        if (self.command, self.path) == ("GET", "/version"):  # any client may ask, and no fault is spent on it
            major, minor = api.version.split(".")
            return self.send(200, json.dumps({"major": major, "minor": minor, "gitVersion": f"v{api.version}.0"}).encode(), {})
        fault = api.faults.draw()
        entry = {"at": round(time.monotonic() - api.cluster.began, 3), "verb": self.command, "path": self.path,
                 "type": self.headers.get("Content-Type"), "body": raw.decode(errors="replace"), "fault": fault}
        api.journal.append(entry)
        if fault in ("reset", "slow"):
            time.sleep(api.faults.patience if fault == "slow" else 0)
            return self.cut()
        if fault and fault not in ("lost", "late", "half"):
            entry["status"] = code = 404 if fault == "page" else int(fault)
            if fault == "page":
                return self.send(404, b"<html>no such page</html>", {"Content-Type": "text/html"})
            body = Refusal(code, "InternalError", "on purpose").body
            headers = {"Retry-After": "1"} if fault == "429" else {}
            return self.send(code, json.dumps(body).encode(), headers)
        if self.path.startswith("/api/v1/nodes?watch=1"):
            entry["status"] = 200
            return self.watch(api)
        code, body, headers = self.judged(api, raw, entry)
        entry["status"] = code
        if fault in ("lost", "late"):
            time.sleep(api.faults.patience if fault == "late" else 0)
            return self.cut()
        self.send(code, json.dumps(body).encode(), headers, half=fault == "half")

    do_GET = do_PATCH = do_POST = do_DELETE = do_PUT = answer_any

    def watch(self, api):
        """A watch of the nodes' metadata: an event a line, until the client's time is over."""
        self.check_token(api)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        version, end = int(query["resourceVersion"]), time.monotonic() + float(query["timeoutSeconds"])
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            while time.monotonic() < end and api.listener:
                for event in api.cluster.changed_since(version):
                    version = int(event["object"]["metadata"]["resourceVersion"])
                    self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
                time.sleep(0.05)

    def judged(self, api, raw, entry):
        try:
            self.check_token(api)
            handler, where, body = self.understood(api, raw, entry)
            with api.cluster.lock:
                return *handler(where, body), {}
        except Refusal as refusal:
            return refusal.code, refusal.body, refusal.headers

    def check_token(self, api):
        word = self.headers.get("Authorization", "")
        if not word.startswith("Bearer "):
            api.complain(f"{self.command} {self.path}: no token")
        if word.removeprefix("Bearer ") != api.token:
            raise Refusal(401, "Unauthorized", "Unauthorized")

    def understood(self, api, raw, entry):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        for verb, pattern, kind, shape, wanted, handler in ROUTES:
            found = re.fullmatch(pattern, url.path)
            if verb != self.command or not found:
                continue
            if wanted.get("fieldManager") == "headroom-scheduling" != query.get("fieldManager"):
                continue
            wrong = [] if query == wanted else [f"query {query}, expected {wanted}"]
            if (kind or "") != (self.headers.get("Content-Type") or ""):
                raise Refusal(415, "UnsupportedMediaType", f"{self.headers.get('Content-Type')}")
            body = None
            if shape is not None:
                try:
                    body = json.loads(raw)
                except ValueError as error:
                    wrong.append(str(error))
                else:
                    wrong += misfit(body, shape)
            if wrong:
                api.complain(f"{self.command} {self.path}: {'; '.join(wrong)}")
                raise Refusal(400, "BadRequest", "; ".join(wrong))
            return getattr(api.cluster, handler), found.groups(), body
        api.complain(f"{self.command} {self.path}: no client may ask that")
        raise Refusal(404, "NotFound", "the server could not find the requested resource")

    def send(self, code, data, headers, half=False):
        with contextlib.suppress(OSError):
            self.send_response(code)
            for name, value in ({"Content-Type": JSON} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:len(data) // 2] if half else data)
            if not half:
                return
            self.wfile.flush()
        self.cut()

    def cut(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self):
        plain, address = super().get_request()
        # The handshake is the thread's: one that dawdles must not hold up the others.
        plain.settimeout(10)
        return self.owner.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        pass  # connections that were cut, by either side


def make_certificate(folder: Path, name="apiserver") -> Path:
    """A self-signed certificate for 127.0.0.1, its own authority; with its key in one file beside it."""
    key, certificate, both = (folder / f"{name}{end}" for end in (".key", ".crt", ".pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "30", "-subj", "/CN=headroom-test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                    "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    both.write_text(certificate.read_text() + key.read_text())
    return both


class ApiServer:
    """On a port of this machine; start() and stop() it as often as you like, what it holds stays."""

    def __init__(self, folder: Path, port: int = 0, pem: Path | None = None):
        self.folder, self.port = folder, port
        self.cluster, self.faults, self.version = Cluster(), Faults(), "1.33"
        self.journal, self.complaints, self.connections = [], [], set()
        self.pem = pem or make_certificate(folder)
        self.ca = folder / "apiserver.crt"
        self.token_file = folder / "token"
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.pem)
        self.rotate("token-1")
        self.listener = None

    def rotate(self, token: str, write_file: bool = True) -> None:
        self.token = token
        if write_file:
            fresh = self.token_file.with_suffix(".new")
            fresh.write_text(token + "\n")
            fresh.rename(self.token_file)

    def complain(self, what: str) -> None:
        self.complaints.append(what)

    def start(self):
        self.listener = Listener(("127.0.0.1", self.port), Handler)
        self.listener.owner = self
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        """As a server that dies: nothing listens, and connections break."""
        if not self.listener:
            return
        self.listener.shutdown()
        self.listener.server_close()
        self.listener = None
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def effects(self, what: str) -> list[str]:
        with self.cluster.lock:
            return [uid for _, done, uid in self.cluster.effects if done == what]

    def state(self) -> dict:
        with self.cluster.lock:
            return {"began_at": self.cluster.began_at, "pods": list(self.cluster.pods.values()), "events": list(self.cluster.events.values()),
                    "nodes": self.cluster.nodes, "effects": self.cluster.effects, "complaints": self.complaints,
                    "requests": self.journal}


def main():
    """Alone, in a guest: DIR/cluster.json says what there is, DIR/state.json what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=6443)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    pem = options.folder / "apiserver.pem"
    api = ApiServer(options.folder, options.port, pem if pem.exists() else None)
    cluster_file = json.loads((options.folder / "cluster.json").read_text())
    for pod in cluster_file["pods"]:
        api.cluster.add_pod(pod["namespace"], pod["name"], pod["uid"])
    for node in cluster_file["nodes"]:
        api.cluster.add_node(node)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with api:
        written = None
        while not ended.wait(0.2):
            # A guest is slow: only what is new is written.
            if (seen := (len(api.journal), len(api.cluster.effects))) != written:
                fresh = options.folder / "state.new"
                fresh.write_text(json.dumps(api.state()))
                fresh.rename(options.folder / "state.json")
                written = seen
            outage = options.folder / "down"  # while it is there, nothing listens
            if outage.exists() and api.listener:
                api.stop()
            elif not outage.exists() and not api.listener:
                api.start()


if __name__ == "__main__":
    main()
