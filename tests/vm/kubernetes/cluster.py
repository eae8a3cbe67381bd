# SPDX-License-Identifier: Apache-2.0
"""A cluster in a lab VM: etcd, the API server, its controllers and the scheduler, and a node beside them; other machines can join it.

Everything is as a node has it: cgroups by systemd, TLS with client certificates, roles and NodeRestriction, the kubelet asking
the API server who may ask it.
"""

import json
import shlex
import time
from dataclasses import dataclass

from certificates import Certificates
from machine import cache
from machine.kubernetes_release import numbers
from worker import ETC, SLOW, Worker, kubeconfig, serve

NETWORK = "10.0.0"
ADDRESS, SERVICE = f"{NETWORK}.2", "10.96.0.1"
API = f"https://{SERVICE}:443"  # as pods see it; nothing forwards it, so the machine has that address too
PERIOD = 3  # seconds between two questions: each is a handshake, and takes the cluster's own processors
CONTROLLERS = ("deployment", "replicaset", "daemonset", "serviceaccount", "serviceaccount-token", "root-ca-cert-publisher",
               "namespace", "resourcequota", "nodelifecycle", "disruption")


@dataclass
class Answer:
    code: int
    body: dict


class Cluster:
    def __init__(self, vm):
        self.vm = vm
        self.version = vm.get("/opt/headroom/share/kubernetes-version").decode().strip()
        self.release = numbers(self.version)
        self.policy = "policy/v1" if self.release >= (1, 21) else "policy/v1beta1"
        self.daemonset = "daemonset" if self.release >= (1, 33) else "daemonset-before-1.33"
        self.worker = Worker(vm, self.release, ADDRESS)
        self.node = self.worker.name

    def start(self) -> "Cluster":
        began = time.monotonic()
        self._prepare()
        with cache.phase("cluster: API server"):
            self.start_control_plane()
        with cache.phase("cluster: node"):
            self.worker.start()
            self.wait("the node is ready", self.ready)
        self.seconds = time.monotonic() - began
        return self

    # Its parts

    def _prepare(self) -> None:
        # An address that is not the loopback's, for API server and kubelet to have one; and a switch for those that join.
        self.vm.run(f"""modprobe bridge; ip link set lo up
            ip link add lab0 type bridge && ip addr add {ADDRESS}/24 dev lab0 && ip addr add {SERVICE}/32 dev lab0 && ip link set lab0 up
            for card in $(ls /sys/class/net | grep ^eth); do ip link set $card master lab0 up; done""", check=True)
        self.certificates = self._certificates()
        files = self.certificates.files()
        self.worker.prepare(API, files | {f"{user}.conf": kubeconfig(API, user).encode() for user in ("admin", "scheduler")})

    def _certificates(self) -> Certificates:
        made = Certificates()
        made.issue("apiserver", "/CN=kube-apiserver", f"IP:{SERVICE},DNS:kubernetes.default.svc")
        made.issue("admin", "/O=system:masters/CN=admin")
        made.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        made.issue("scheduler", "/CN=system:kube-scheduler")
        made.issue("node", f"/O=system:nodes/CN=system:node:{self.node}")
        made.key_pair("serviceaccounts")
        return made

    def start_control_plane(self) -> None:
        serve(self.vm, "etcd", "etcd", "--data-dir=/var/lib/etcd", "--log-level=warn", "--logger=zap")
        self.start_api_server()
        serve(self.vm, "kube-controller-manager", "kube-controller-manager", f"--kubeconfig={ETC}/admin.conf",
              f"--service-account-private-key-file={ETC}/serviceaccounts.key", f"--root-ca-file={ETC}/ca.crt",
              "--leader-elect=false", f"--controllers={','.join(CONTROLLERS)}")
        self.start_scheduler(f"--kubeconfig={ETC}/scheduler.conf", "--leader-elect=false")

    def start_scheduler(self, *words: str) -> None:
        serve(self.vm, "kube-scheduler", "kube-scheduler", *words)

    def start_api_server(self) -> None:
        serve(self.vm, "kube-apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
              f"--advertise-address={ADDRESS}", "--secure-port=443", f"--client-ca-file={ETC}/ca.crt",
              f"--tls-cert-file={ETC}/apiserver.crt", f"--tls-private-key-file={ETC}/apiserver.key",
              "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
              "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
              f"--service-account-key-file={ETC}/serviceaccounts.pub",
              f"--service-account-signing-key-file={ETC}/serviceaccounts.key", "--profiling=false",
              # For kubectl exec and logs.
              f"--kubelet-client-certificate={ETC}/kubelet-client.crt", f"--kubelet-client-key={ETC}/kubelet-client.key",
              "--kubelet-preferred-address-types=InternalIP",
              # What a cluster of one server and one node can do without; the rest of it is slow enough, emulated.
              "--enable-priority-and-fairness=false", "--endpoint-reconciler-type=none",
              # It ends when its clients leave it no time to start. A kubelet starts it again; a test that kills it means it.
              properties=("Restart=on-failure", "RestartPreventExitStatus=SIGKILL"))
        self.wait("the API server is ready", lambda: self.ask("GET", "/readyz", whole=False).code == 200)

    def join(self, vm, number: int) -> Worker:
        """Another machine, plugged into a port of this one's."""
        name, address = f"worker-{number}", f"{NETWORK}.{2 + number}"
        vm.run(f"""hostname {name}; ip link set lo up
            ip addr add {address}/24 dev eth0 && ip link set eth0 up && ip route add {SERVICE}/32 via {ADDRESS}""", check=True)
        self.certificates.issue(name, f"/O=system:nodes/CN=system:node:{name}")
        files = {"ca.crt": self.certificates.read("ca.crt")}
        worker = Worker(vm, self.release, address)
        worker.prepare(API, files | {f"node.{kind}": self.certificates.read(f"{name}.{kind}") for kind in ("crt", "key", "pem")})
        worker.start()
        self.wait(f"{name} is ready", lambda: self.ready(name))
        return worker

    def ready(self, name: str = "") -> bool:
        """This machine's node, or the one of that name."""
        node = self.ask("GET", f"/api/v1/nodes/{name or self.node}")
        return node.code == 200 and condition(node.body, "Ready") == "True"

    # What a test does with it

    def ask(self, verb: str, path: str, body=None, whole: bool = True) -> Answer:
        """One request, as the cluster's administrator."""
        kind = "merge-patch+json" if verb == "PATCH" else "json"
        data = [] if body is None else ["-H", f"Content-Type: application/{kind}", "--data-binary", "@-"]
        words = shlex.join(["curl", "-sS", "--max-time", "60", "--cacert", f"{ETC}/ca.crt", "--cert", f"{ETC}/admin.crt",
                            "--key", f"{ETC}/admin.key", "-X", verb, "-w", "\n%{http_code}", *data, API + path])
        out = self.vm.run(words, timeout=90, data=json.dumps(body).encode() if body is not None else b"").out
        text, _, code = out.rpartition("\n")
        return Answer(int(code) if code.isdigit() else 0, json.loads(text) if whole and text.startswith("{") else {})

    def kubectl(self, *words: str, data: bytes = b"", check: bool = True):
        return self.vm.run(f"kubectl --kubeconfig {ETC}/admin.conf --cache-dir=/var/cache/kubectl {shlex.join(words)}",
                           timeout=SLOW, check=check, data=data)

    def wait(self, what: str, holds, timeout: float = SLOW):
        """Until `holds()` is true; what it was then."""
        deadline = time.monotonic() + timeout
        while not (seen := holds()):
            assert time.monotonic() < deadline, f"never came: {what}\n{self.journal()}"
            time.sleep(PERIOD)
        return seen

    def manifests(self, name: str = "") -> bytes:
        """As kubectl has built them; without a name, those of the DaemonSet that the tests run."""
        return self.vm.get(f"/opt/headroom/share/{name or self.daemonset}.yaml")

    def pods(self, namespace: str, app: str = "") -> list[dict]:
        selector = f"?labelSelector=app%3D{app}" if app else ""
        return self.ask("GET", f"/api/v1/namespaces/{namespace}/pods{selector}").body.get("items", [])

    def journal(self) -> str:
        return self.vm.run("for unit in kubelet kube-apiserver kube-controller-manager kube-scheduler containerd; do "
                           "journalctl -b -u $unit -n 15 -o cat --no-hostname | cut -c1-300; done").out


def condition(thing: dict, kind: str) -> str:
    """Of a node or a pod: True, False or Unknown; empty where it has none."""
    return next((each["status"] for each in thing.get("status", {}).get("conditions", []) if each["type"] == kind), "")


def of(vm) -> Cluster:
    """The machine's one cluster, started by who wants it first."""
    if not hasattr(vm, "cluster"):
        vm.cluster = Cluster(vm).start()
        print(f"    a cluster of Kubernetes {vm.cluster.version} in {vm.cluster.seconds:.0f} s (emulated)")
    return vm.cluster
