# SPDX-License-Identifier: Apache-2.0
"""What makes a machine a node of the cluster: containerd, the images of its pods, and the kubelet.

The version is that of the payload's programs; what one version wants and another refuses is in kubelet_configuration() and
start_kubelet(). Pods are on the node's own network: there is no other.
"""

import json
import shlex

ETC = "/etc/kubernetes"
PATH = "/opt/headroom/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IMAGE, PAUSE = "docker.io/lab/workload:1", "docker.io/lab/pause:1"
SLOW = 900  # seconds: what is awaited comes, but the machine is emulated

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


def kubelet_configuration(release: tuple[int, int]) -> dict:
    return KUBELET | ({"containerRuntimeEndpoint": SOCKET} if release >= (1, 27) else {})


def kubeconfig(server: str, user: str) -> str:
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": f"{ETC}/ca.crt"}}],
        "users": [{"name": user, "user": {"client-certificate": f"{ETC}/{user}.crt", "client-key": f"{ETC}/{user}.key"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}]})


def serve(vm, name: str, *words: str, properties=()) -> None:
    vm.spawn("exec " + shlex.join(words), unit=f"{name}.service",
             properties=(f"Environment=PATH={PATH} GOGC=400", "OOMScoreAdjust=-999", "LimitNOFILE=65536", *properties))


class Worker:
    """A machine with this address, which is not the loopback's."""

    def __init__(self, vm, release: tuple[int, int], address: str):
        self.vm, self.release, self.address = vm, release, address
        self.name = vm.run("uname -n", check=True).out.strip()

    def prepare(self, server: str, certificates: dict[str, bytes]) -> None:
        """The API server's URL; what ca.crt, node.crt and node.key are, and node.pem, which is both of them."""
        vm = self.vm
        vm.run(f"modprobe overlay; sysctl -q vm.max_map_count=262144; mkdir -p {ETC}/cni /var/lib/kubelet/pki", check=True)
        for name, data in (certificates | {"node.conf": kubeconfig(server, "node").encode()}).items():
            vm.put(data, f"{ETC}/{name}", mode="0600")
        # The kubelet's flags for it are gone since 1.27; containerd 2 has the CRI that later kubelets need.
        containerd = CONTAINERD[2 if self.release >= (1, 27) else 1]
        for name, text in (("containerd.toml", containerd), ("cni/none.conflist", json.dumps(NETWORK)),
                           ("kubelet.json", json.dumps(kubelet_configuration(self.release)))):
            vm.put(text.encode(), f"{ETC}/{name}")
        # Where a kubelet that got its certificate from the cluster keeps it.
        vm.run(f"cp -p {ETC}/node.pem /var/lib/kubelet/pki/kubelet-client-current.pem", check=True)

    def start(self) -> None:
        self.start_containerd()
        for image in ("pod-image", "headroom-image"):
            self.vm.run(f"ctr --namespace k8s.io images import /opt/headroom/share/{image}.tar", check=True, timeout=SLOW)
        self.start_kubelet()

    def start_containerd(self) -> None:
        serve(self.vm, "containerd", "containerd", "--config", f"{ETC}/containerd.toml",
              properties=("Delegate=yes", "KillMode=process"))
        self.vm.wait_until("ctr version >/dev/null 2>&1", timeout=SLOW)

    def start_kubelet(self) -> None:
        runtime = [] if self.release >= (1, 27) else ["--container-runtime=remote", f"--container-runtime-endpoint={SOCKET}"]
        serve(self.vm, "kubelet", "kubelet", f"--config={ETC}/kubelet.json", f"--kubeconfig={ETC}/node.conf", *runtime,
              f"--node-ip={self.address}")
