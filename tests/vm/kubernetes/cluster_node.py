# SPDX-License-Identifier: Apache-2.0
"""headroomd and headroom-kube on the node of a real cluster, as the package puts them there, with the token of the service
account that the manifests make, and no right but its roles'."""

import json

from cluster import API, ETC as CLUSTER
from kube_node import KubeNode
from node import ETC

ACCOUNT = "/api/v1/namespaces/headroom-system/serviceaccounts/headroom"
TOKEN = f"{ETC}/token"


def objects(text: str) -> list[str]:
    return [each for each in text.split("\n---\n") if each.strip()]


def admit(cluster) -> None:
    """What the programs need of the cluster where the package has put them on the node: all of the manifests but what runs
    them. The test's DaemonSet comes last: it has the rights that this version's kubelet asks for, and no older ones."""
    for name in ("everything", ""):
        built = objects(cluster.manifests(name).decode())
        cluster.kubectl("apply", "-f", "-", data="\n---\n".join(each for each in built if "kind: DaemonSet" not in each).encode())


class ClusterNode(KubeNode):
    """Its pods are the cluster's: none is made here. The node is the machine of the control plane, or another one."""

    def __init__(self, cluster, vm=None):
        super().__init__(vm or cluster.vm)
        self.cluster = cluster

    def give_account_token(self) -> None:
        """As a projected volume has it: for an hour, and for this account."""
        if self.cluster.ask("GET", ACCOUNT).code == 404:
            admit(self.cluster)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self.cluster.ask("POST", f"{ACCOUNT}/token", request)
        assert answer.code == 201, answer
        self.give_token(answer.body["status"]["token"])

    def configuration(self, mode="enforce", after="evict", compatibilityMetrics=False, scheduling=None, **api) -> str:
        """Thresholds are not said: they are the kubelet's own."""
        settings = {"timeout": "20s", "tokenFile": TOKEN}  # emulated
        kubelet = {"url": "https://127.0.0.1:10250", "tlsServerName": "{nodeName}", "configz": True, "period": "2s",
                   "caFile": "/var/lib/kubelet/pki/kubelet.crt", **settings}
        api = {"url": API, "caFile": f"{CLUSTER}/ca.crt", "afterEviction": after, **settings, **api}
        return json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                           "headroom": {"mode": mode, "compatibilityMetrics": compatibilityMetrics,
                                        "kubernetes": {"kubelet": kubelet, "api": api, "scheduling": scheduling or {}}}})

    def start_both(self, **settings) -> None:
        """Returns when the kubelet's pods and thresholds are known."""
        self.give_account_token()
        self.start(self.configuration(**settings))
        self.start_kube()
        self.wait_for(self.kube_status, lambda status: status.get("lastPollSucceeded"), timeout=120)
        self.vm.wait_until(f"headroomctl config | grep -q {json.dumps('/run/headroom-kube/kubelet.yaml')}", timeout=120)

    def report_status(self) -> dict:
        return (self.status().get("kubernetes") or {}).get("api") or {}
