# SPDX-License-Identifier: Apache-2.0
"""kubernetes/chart, rendered by render_chart.go: with the same choice it has the objects that kustomize has.

Two things differ on purpose. Kustomize names the ConfigMap after its content, so that a new configuration makes new pods; the
chart's keeps its name, and an annotation of the pods is its checksum instead. And the Namespace is Helm's matter unless
namespace.create is set.
"""

import copy
import json
import tempfile
from pathlib import Path

import yaml

from machine import chart_renderer
from manifests import KUBERNETES, OPERATOR, kubectl

CHART = KUBERNETES / "chart"
NAMESPACE = "headroom-system"
ENFORCE = {"report": {"evictions": True}}


def config_of(folder: str) -> dict:
    return yaml.safe_load((KUBERNETES / folder / "headroom.yaml").read_text())


def replaced(config: dict) -> dict:
    """Values that leave nothing of the chart's own configuration but what is in this one."""
    old = yaml.safe_load((CHART / "values.yaml").read_text())["config"]

    def without(old: dict, new: dict) -> dict:
        return {**{key: None for key in old if key not in new},
                **{key: without(old[key], value) if isinstance(value, dict) and isinstance(old.get(key), dict) else value
                   for key, value in new.items()}}
    return without(old, config)


# kustomization, or components that are added to overlays/enforce → the values that make the same
CHOICES = {
    "base": {},
    "overlays/kubeadm": {"kubelet": {"ownCertificate": True}},
    "overlays/enforce": {**ENFORCE, "config": replaced(config_of("overlays/enforce"))},
    "overlays/everything": {
        "schedulerExtender": True,
        "report": {"evictions": True, "deletions": True, "nodeConditions": True},
        "kubelet": {"ownCertificate": True, "before133": True}, "config": replaced(config_of("overlays/everything"))},
    OPERATOR: {**ENFORCE, "prometheusOperator": True, "config": replaced(config_of("overlays/enforce"))},
    ("metrics-https",): {**ENFORCE, "metricsHttps": True, "config": replaced(config_of("overlays/enforce"))},
    ("scheduler-extender",): {**ENFORCE, "schedulerExtender": True, "config": replaced(config_of("overlays/enforce"))},
    ("selinux",): {**ENFORCE, "seLinux": True, "config": replaced(config_of("overlays/enforce"))},
    ("openshift",): {**ENFORCE, "openshift": True, "config": replaced(config_of("overlays/enforce"))},
    ("kubelet-path-k0s",): {**ENFORCE, "kubelet": {"directory": "/var/lib/k0s/kubelet"},
                            "config": replaced(config_of("overlays/enforce"))},
    ("kubelet-path-microk8s",): {**ENFORCE, "kubelet": {"directory": "/var/snap/microk8s/common/var/lib/kubelet"},
                                 "config": replaced(config_of("overlays/enforce"))},
}


def rendered(values: dict) -> list[dict]:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(values, file)
        file.flush()
        done = chart_renderer.render(CHART, NAMESPACE, Path(file.name))
    assert done.returncode == 0, (values, done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def kustomized(choice: str | tuple[str, ...]) -> list[dict]:
    if isinstance(choice, str):
        done = kubectl("kustomize", KUBERNETES / choice)
    else:
        with tempfile.TemporaryDirectory(dir=KUBERNETES) as folder:
            Path(folder, "kustomization.yaml").write_text(json.dumps({
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": NAMESPACE,
                "resources": ["../overlays/enforce"], "components": [f"../components/{each}" for each in choice]}))
            done = kubectl("kustomize", folder)
    assert done.returncode == 0, (choice, done.stderr)
    return list(yaml.safe_load_all(done.stdout))


def comparable(objects: list[dict]) -> dict[tuple[str, str], dict]:
    """By kind and name, without what differs on purpose; the configuration as what it says."""
    objects = copy.deepcopy(objects)
    for each in objects:
        if each["kind"] == "ConfigMap":
            each["metadata"]["name"] = "headroom"
            each["data"] = {name: yaml.safe_load(text) for name, text in each["data"].items()}
        if each["kind"] == "SecurityContextConstraints":
            each["metadata"].pop("namespace", None)  # of the cluster: kustomize does not know that kind
        if each["kind"] == "DaemonSet":
            template = each["spec"]["template"]
            template["metadata"].pop("annotations", None)
            for volume in template["spec"]["volumes"]:
                if volume["name"] == "configuration":
                    volume["configMap"]["name"] = "headroom"
            template["spec"]["volumes"].sort(key=lambda volume: volume["name"])
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def check() -> str:
    count = 0
    for choice, values in CHOICES.items():
        want = comparable(kustomized(choice))
        have = comparable(rendered({**values, "namespace": {"create": True}}))
        assert have.keys() == want.keys(), (choice, have.keys() ^ want.keys())
        for key, value in want.items():
            assert have[key] == value, (choice, key, difference(value, have[key]))
        count += len(want)
    base = comparable(rendered({}))
    assert comparable(kustomized("base")).keys() - base.keys() == {("Namespace", NAMESPACE)}, base.keys()
    check_annotation()
    check_refusal()
    return f"{count} objects of {len(CHOICES)} choices are those of kustomize"


def check_annotation() -> None:
    """A new configuration makes new pods."""
    def checksum(values: dict) -> str:
        daemon_set, = (each for each in rendered(values) if (each["kind"], each["metadata"]["name"]) == ("DaemonSet", "headroom"))
        return daemon_set["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    assert checksum({}) == checksum({"image": {"tag": "1"}}) != checksum({"config": {"headroom": {"mode": "enforce"}}})


def check_refusal() -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"report": {"deletions": True}}, file)
        file.flush()
        done = chart_renderer.render(CHART, NAMESPACE, Path(file.name))
    assert done.returncode != 0 and "report.deletions needs report.evictions" in done.stderr, done


def difference(want, have, at: str = "") -> str:
    """The first place where two objects differ."""
    if isinstance(want, dict) and isinstance(have, dict):
        for key in want.keys() | have.keys():
            if want.get(key) != have.get(key):
                return difference(want.get(key), have.get(key), f"{at}.{key}")
    if isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for i, (left, right) in enumerate(zip(want, have)):
            if left != right:
                return difference(left, right, f"{at}[{i}]")
    return f"{at}: kustomize {want!r}, chart {have!r}"
