# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node in a lab VM: etcd, the API server, its controllers, the scheduler, containerd and the kubelet.

The version is that of the payload's programs; what one version wants and another refuses is in __init__ and in
kubelet_configuration(). Pods are on the node's own network: there is no other. Everything is as a node has it: cgroups by systemd, TLS with
client certificates, roles and NodeRestriction, the kubelet asking the API server who may ask it.
"""

import json
import shlex
import time
from dataclasses import dataclass

from certificates import Certificates
from machine import cache
from machine.kubernetes_release import numbers

ETC = "/etc/kubernetes"
ADDRESS, SERVICE = "10.0.0.2", "10.96.0.1"
API = f"https://{SERVICE}:443"  # as pods see it; nothing forwards it, so the machine has that address too
PATH = "/opt/headroom/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE, PAUSE = "docker.io/lab/workload:1", "docker.io/lab/pause:1"
SLOW = 900  # seconds: what is awaited comes, but the machine is emulated
PERIOD = 3  # seconds between two questions: each is a handshake, and takes the cluster's own processors

# What is reserved leaves a part of the machine to pods: the kubelet of 1.20 sees how much of that is left, and with
# cgroup v2 no more.
THRESHOLD_MIB, RESERVED_MIB = 600, 2560
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                       "x509": {"clientCAFile": f"{ETC}/ca.crt"}},
    "authorization": {"mode": "Webhook"},
    "cgroupDriver": "systemd", "enforceNodeAllocatable": ["pods"],
    "systemReserved": {"memory": f"{RESERVED_MIB}Mi"},
    "evictionHard": {"memory.available": f"{THRESHOLD_MIB}Mi"},
    "evictionPressureTransitionPeriod": "20s",
    "makeIPTablesUtilChains": False, "resolvConf": "", "imageGCHighThresholdPercent": 100,
}
SOCKET = "unix:///run/containerd/containerd.sock"
CONTAINERD = {  # containerd's major version → its configuration
    1: f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{ETC}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
""",
    2: f"""version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime".cni]
  conf_dir = "{ETC}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""}
# Never used, as no pod asks for a network of its own; without one the node is not ready.
NETWORK = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}
CONTROLLERS = ("deployment", "replicaset", "daemonset", "serviceaccount", "serviceaccount-token", "root-ca-cert-publisher",
               "namespace", "resourcequota", "nodelifecycle", "disruption")


@dataclass
class Answer:
    code: int
    body: dict


def kubelet_configuration(release: tuple[int, int]) -> dict:
    return KUBELET | ({"containerRuntimeEndpoint": SOCKET} if release >= (1, 27) else {})


class Cluster:
    def __init__(self, vm):
        self.vm = vm
        self.version = vm.get("/opt/headroom/share/kubernetes-version").decode().strip()
        self.release = numbers(self.version)
        # The kubelet's flags for it are gone since 1.27; containerd 2 has the CRI that later kubelets need.
        self.containerd = 2 if self.release >= (1, 27) else 1
        self.policy = "policy/v1" if self.release >= (1, 21) else "policy/v1beta1"
        self.daemonset = "daemonset" if self.release >= (1, 33) else "daemonset-before-1.33"
        self.node = vm.run("uname -n", check=True).out.strip()

    def start(self) -> "Cluster":
        began = time.monotonic()
        self._prepare()
        with cache.phase("cluster: API server"):
            self.start_control_plane()
        with cache.phase("cluster: node"):
            self._start_node()
            self.wait("the node is ready", self.ready)
        self.seconds = time.monotonic() - began
        return self

    # Its parts

    def _prepare(self) -> None:
        # An address that is not the loopback's, for API server and kubelet to have one.
        self.vm.run(f"""modprobe -a overlay bridge; ip link set lo up
            ip link add lab0 type bridge && ip addr add {ADDRESS}/24 dev lab0 && ip addr add {SERVICE}/32 dev lab0 && ip link set lab0 up
            sysctl -q vm.max_map_count=262144; mkdir -p {ETC}/cni /var/lib/kubelet/pki""", check=True)
        for name, data in self._certificates().files().items():
            self.vm.put(data, f"{ETC}/{name}", mode="0600")
        for user in ("admin", "scheduler", "node"):
            self.vm.put(self._kubeconfig(user).encode(), f"{ETC}/{user}.conf", mode="0600")
        for name, text in (("containerd.toml", CONTAINERD[self.containerd]), ("cni/none.conflist", json.dumps(NETWORK)),
                           ("kubelet.json", json.dumps(kubelet_configuration(self.release)))):
            self.vm.put(text.encode(), f"{ETC}/{name}")
        # Where a kubelet that got its certificate from the cluster keeps it.
        self.vm.run(f"cp -p {ETC}/node.pem /var/lib/kubelet/pki/kubelet-client-current.pem", check=True)

    def _certificates(self) -> Certificates:
        made = Certificates()
        made.issue("apiserver", "/CN=kube-apiserver", f"IP:{SERVICE},DNS:kubernetes.default.svc")
        made.issue("admin", "/O=system:masters/CN=admin")
        made.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        made.issue("scheduler", "/CN=system:kube-scheduler")
        made.issue("node", f"/O=system:nodes/CN=system:node:{self.node}")
        made.key_pair("serviceaccounts")
        return made

    @staticmethod
    def _kubeconfig(user: str) -> str:
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": API, "certificate-authority": f"{ETC}/ca.crt"}}],
            "users": [{"name": user, "user": {"client-certificate": f"{ETC}/{user}.crt", "client-key": f"{ETC}/{user}.key"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}]})

    def _serve(self, name: str, *words: str, properties=()) -> None:
        self.vm.spawn("exec " + shlex.join(words), unit=f"{name}.service",
                      properties=(f"Environment=PATH={PATH} GOGC=400", "OOMScoreAdjust=-999", "LimitNOFILE=65536", *properties))

    def start_control_plane(self) -> None:
        self._serve("etcd", "etcd", "--data-dir=/var/lib/etcd", "--log-level=warn", "--logger=zap")
        self.start_api_server()
        self._serve("kube-controller-manager", "kube-controller-manager", f"--kubeconfig={ETC}/admin.conf",
                    f"--service-account-private-key-file={ETC}/serviceaccounts.key", f"--root-ca-file={ETC}/ca.crt",
                    "--leader-elect=false", f"--controllers={','.join(CONTROLLERS)}")
        self.start_scheduler(f"--kubeconfig={ETC}/scheduler.conf", "--leader-elect=false")

    def start_scheduler(self, *words: str) -> None:
        self._serve("kube-scheduler", "kube-scheduler", *words)

    def start_api_server(self) -> None:
        self._serve("kube-apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
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

    def _start_node(self) -> None:
        self.start_containerd()
        for image in ("pod-image", "headroom-image"):
            self.vm.run(f"ctr --namespace k8s.io images import /opt/headroom/share/{image}.tar", check=True, timeout=SLOW)
        self.start_kubelet()

    def start_containerd(self) -> None:
        self._serve("containerd", "containerd", "--config", f"{ETC}/containerd.toml",
                    properties=("Delegate=yes", "KillMode=process"))
        self.vm.wait_until("ctr version >/dev/null 2>&1", timeout=SLOW)

    def start_kubelet(self) -> None:
        runtime = [] if self.release >= (1, 27) else ["--container-runtime=remote", f"--container-runtime-endpoint={SOCKET}"]
        self._serve("kubelet", "kubelet", f"--config={ETC}/kubelet.json", f"--kubeconfig={ETC}/node.conf", *runtime,
                    f"--node-ip={ADDRESS}")

    def ready(self) -> bool:
        node = self.ask("GET", f"/api/v1/nodes/{self.node}")
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
