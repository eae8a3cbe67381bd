# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes of real programs on this machine's loopback, without a kubelet: etcd, the API server, its controllers, and what a
test starts beside them."""

import http.client
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "vm"), str(HERE.parent / "vm/kubernetes")]

from certificates import Certificates  # noqa: E402
from machine.kubernetes_release import Release, numbers  # noqa: E402

PORT, ETCD, ETCD_PEERS = 16443, 12379, 12380
CONTROLLERS = "deployment,replicaset,serviceaccount,serviceaccount-token,root-ca-cert-publisher,namespace,disruption"


class RealApi:
    """etcd, kube-apiserver and kube-controller-manager in a folder; url, ca and token_file are what a Client wants."""

    def __init__(self, folder: Path, release: Release):
        self.folder, self.children = folder, []
        self.programs = {program.name: program for program in release.programs}
        self.release = numbers(release.version)
        self.url, self.ca, self.token_file = f"https://127.0.0.1:{PORT}", folder / "ca.crt", folder / "token"
        made = Certificates()
        made.issue("apiserver", "/CN=kube-apiserver", "IP:127.0.0.1")
        made.issue("admin", "/O=system:masters/CN=admin")
        made.key_pair("serviceaccounts")
        for name, data in made.files().items():
            (folder / name).write_bytes(data)
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        user = {"client-certificate": str(folder / "admin.crt"), "client-key": str(folder / "admin.key")}
        (folder / "admin.conf").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it", "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}], "contexts": [{"name": "it", "context": {"cluster": "it", "user": "admin"}}]}))

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self.run("etcd", "--data-dir=etcd", f"--listen-client-urls=http://127.0.0.1:{ETCD}",
                  f"--advertise-client-urls=http://127.0.0.1:{ETCD}", f"--listen-peer-urls=http://127.0.0.1:{ETCD_PEERS}")
        self.run("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{ETCD}", "--bind-address=127.0.0.1",
                  "--advertise-address=10.0.0.2", f"--secure-port={PORT}", "--client-ca-file=ca.crt", "--tls-cert-file=apiserver.crt",
                  "--tls-private-key-file=apiserver.key", "--authorization-mode=Node,RBAC",
                  "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
                  "--service-account-key-file=serviceaccounts.pub", "--service-account-signing-key-file=serviceaccounts.key")
        wait(lambda: self.ask("GET", "/readyz")[0] == 200, 180, "the API server is not ready")
        self.run("kube-controller-manager", "--kubeconfig=admin.conf", "--service-account-private-key-file=serviceaccounts.key",
                  "--root-ca-file=ca.crt", "--leader-elect=false", "--secure-port=0", f"--controllers={CONTROLLERS}",
                  *(["--port=0"] if self.release < (1, 24) else []))

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.kill()  # its data dies with it
            child.wait(30)

    def run(self, name: str, *words: str) -> subprocess.Popen:
        """Until the end, or until the caller ends it."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.children.append(subprocess.Popen([self.programs[name], *words], cwd=self.folder, stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL))
        return self.children[-1]

    def link(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.folder / "admin.pem")
        return http.client.HTTPSConnection("127.0.0.1", PORT, context=context, timeout=60)

    def ask(self, verb: str, path: str, body=None, kind="application/json") -> tuple[int, dict]:
        """As the cluster's administrator."""
        try:
            link = self.link()
            link.request(verb, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
            answer = link.getresponse()
            text = answer.read()
        except OSError:
            return 0, {}
        return answer.status, json.loads(text) if text.startswith(b"{") else {}

    def make(self, path: str, body: dict) -> dict:
        code, made = self.ask("POST", path, body)
        assert code == 201, (path, code, made)
        return made

    def token(self, account: str, namespace: str) -> str:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return self.make(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request)["status"]["token"]

    def make_namespace(self, name: str) -> None:
        self.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        wait(lambda: self.ask("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, 60, "no service account")

    def kubectl(self, *words: str, data: str) -> str:
        """The cluster's own, as old as it is."""
        done = subprocess.run([self.programs["kubectl"], "--kubeconfig=admin.conf", "--cache-dir=cache", *words, "-f", "-"], text=True,
                              cwd=self.folder, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout


def wait(holds, seconds: float, what):
    """Until holds() is true; what it was then. `what` is the error, or a function that asks for it."""
    end = time.monotonic() + seconds
    while not (seen := holds()):
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.05)
    return seen
