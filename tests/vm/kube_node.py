# SPDX-License-Identifier: Apache-2.0
"""A node beside a kubelet: headroomd, headroom-kube under its own unit, and a double of the kubelet.

A pod is a scope in the pod's slice, as containerd makes it, and an entry of the double's /pods.
"""

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from node import ETC, Node, Pod, kubelet_configuration

KUBELET = "/run/kubelet-double"
PORT = 10250
RUN, STATE = "/run/headroom-kube", "/var/lib/headroom-kube"
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/kube"


@dataclass
class KubePod(Pod):
    namespace: str = "shop"

    def __post_init__(self):
        super().__post_init__()
        self.id = self.uid.replace("-", "") * 2  # 64 hexadecimal digits

    @property
    def unit(self) -> str:
        return f"cri-containerd-{self.id}.scope"

    def entry(self, phase="Running") -> dict:
        """Its part of a PodList."""
        pod = json.loads(self.manifest())
        pod["metadata"]["namespace"] = self.namespace
        classes = {"guaranteed": "Guaranteed", "burstable": "Burstable", "besteffort": "BestEffort"}
        pod["status"] = {"phase": phase, "qosClass": classes[self.tier], "containerStatuses": [
            {"name": "main", "image": "workload:1", "containerID": f"containerd://{self.id}"}]}
        return pod


class Authority:
    """Certificates of one authority, made on this machine."""

    def __init__(self, name: str):
        self.name, self.folder = name, tempfile.TemporaryDirectory(prefix="headroom-ca-")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                      "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.crt")

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder.name, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    @property
    def certificate(self) -> bytes:
        return Path(self.folder.name, "ca.crt").read_bytes()

    def server(self, name: str) -> bytes:
        """A server's certificate and key, for that DNS name alone."""
        Path(self.folder.name, "ext").write_text(f"subjectAltName=DNS:{name}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                      "-keyout", "server.key", "-out", "server.csr")
        self._openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                      "20", "-extfile", "ext", "-out", "server.crt")
        return Path(self.folder.name, "server.crt").read_bytes() + Path(self.folder.name, "server.key").read_bytes()


class KubeNode(Node):
    def __init__(self, vm):
        super().__init__(vm)
        self.entries: list[dict] = []
        self.name = vm.run("uname -n", check=True).out.strip()
        vm.run(f"""cp /opt/headroom/systemd/headroom-kube.service /run/systemd/system/
            mkdir -p {KUBELET} /run/systemd/system/headroom-kube.service.d
            printf '[Service]\\nExecStart=\\nExecStart=/opt/headroom/bin/headroom-kube --config {ETC}/headroom.yaml\\n' \
                > /run/systemd/system/headroom-kube.service.d/lab.conf
            systemctl daemon-reload""", check=True)

    def configuration(self, hard="100Mi", period="500ms", kubelet=None, mode="enforce", **headroom) -> str:
        kubelet = {"url": f"https://127.0.0.1:{PORT}", "tlsServerName": "{nodeName}", "period": period,
                   "caFile": f"{ETC}/kubelet-ca.crt", "tokenFile": f"{ETC}/token", **(kubelet or {})}
        return kubelet_configuration(hard=hard, mode=mode, kubernetes={"kubelet": kubelet}, **headroom)

    def start_kubelet(self, authority: Authority, token: str = "first") -> None:
        self.trust(authority)
        self.give_token(token)
        self.serve(authority)
        self.vm.put(token.encode(), f"{KUBELET}/token")
        self.write_pods()
        self.vm.put((FIXTURES / "configz.json").read_bytes(), f"{KUBELET}/configz.json")
        self.run_kubelet()

    def run_kubelet(self) -> None:
        self.vm.run("systemctl kill -s KILL kubelet-double; true")
        self.vm.wait_until("! systemctl is-active --quiet kubelet-double")
        self.vm.spawn(f"exec /opt/headroom/bin/python3 /opt/headroom/bin/kubelet_double.py {KUBELET} {PORT}",
                      unit="kubelet-double.service")
        self.vm.wait_until(f"curl -ks --max-time 5 https://127.0.0.1:{PORT}/ >/dev/null", timeout=60)

    def trust(self, authority: Authority) -> None:
        self.vm.put(authority.certificate, f"{ETC}/kubelet-ca.crt")

    def give_token(self, token: str) -> None:
        """Readable by root alone."""
        self.vm.put(token.encode() + b"\n", f"{ETC}/token", mode="0600")

    def serve(self, authority: Authority) -> None:
        self.vm.put(authority.server(self.name), f"{KUBELET}/server.pem")

    def start_kube(self) -> None:
        self.vm.run("systemctl start headroom-kube.service || { journalctl -u headroom-kube -n 30 -o cat; exit 1; }", check=True)

    def write_pods(self, entries=None) -> None:
        """What /pods answers from now on; whole at every instant."""
        self.entries = self.entries if entries is None else entries
        pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.entries}
        self.vm.put(json.dumps(pods).encode(), f"{KUBELET}/pods.new")
        self.vm.run(f"mv {KUBELET}/pods.new {KUBELET}/pods.json", check=True)

    def do(self, mode: str) -> None:
        self.vm.put(mode.encode(), f"{KUBELET}/mode")

    def run_script(self, pod: Pod, script: str, *properties: str) -> Pod:
        """The kubelet knows it first; then its container comes to life."""
        self.write_pods([*self.entries, pod.entry()])
        words = " ".join(f"--property={each}" for each in properties)
        self.vm.spawn(f"exec systemd-run --quiet --scope --collect --unit={pod.unit} --slice={pod.slice} {words} "
                      f"/bin/sh -c '{script}'", unit=f"runner-{pod.name}.service")
        self.pods.append(pod)
        self.vm.wait_until(f"systemctl is-active --quiet {pod.unit}")
        return pod

    def gone(self, pod: Pod) -> None:
        """Its containers have ended, and the kubelet forgets it."""
        self.vm.run(f"systemctl stop {pod.unit} {pod.slice}; true", timeout=60)
        self.pods.remove(pod)
        self.write_pods([each for each in self.entries if each["metadata"]["uid"] != pod.uid])

    def known(self) -> dict[str, dict]:
        """namespace/name → what headroomctl knows of it."""
        return {f"{pod['namespace']}/{pod['name']}": pod for pod in self.status()["pods"]}

    def wait_for(self, what, holds, timeout: float = 30):
        """Until `holds` of what() is true; what it was then."""
        deadline = time.monotonic() + timeout
        while not holds(seen := what()):
            assert time.monotonic() < deadline, f"{seen}\n{self.between_them()}"
            time.sleep(0.2)
        return seen

    def between_them(self) -> str:
        """What passed from the kubelet to headroomd, for a test that fails."""
        return self.vm.run(f"tail -n 5 {KUBELET}/requests; cat {RUN}/status.json; ls -la {RUN} {RUN}/ {RUN}/pods/").out

    def kube_status(self) -> dict:
        return (self.status().get("kubernetes") or {}).get("kubelet") or {}

    def journal(self) -> str:
        return self.vm.run("journalctl -b -u headroomd -u headroom-kube -o short-precise --no-hostname").out

    def leave(self) -> None:
        self.vm.run("systemctl stop headroom-kube kubelet-double; systemctl reset-failed headroom-kube kubelet-double; "
                    f"rm -rf {KUBELET} {RUN} {STATE} /run/private/headroom-kube /var/lib/private/headroom-kube; true", timeout=60)
        super().leave()
        self.vm.run("rm -rf /run/systemd/system/headroom-kube.service*; systemctl daemon-reload")
