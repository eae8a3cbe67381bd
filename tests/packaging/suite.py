# SPDX-License-Identifier: Apache-2.0
"""The portable archive and the kustomize components. Nothing is fetched, and nothing is installed outside a temporary folder."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = sorted(path.parent.name for path in (ROOT / "kubernetes/components").glob("*/kustomization.yaml"))


def command(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def build(folder: Path, *components: str) -> list[dict]:
    """The objects of overlays/enforce with these components."""
    def relative(path: str) -> str:
        return os.path.relpath(ROOT / "kubernetes" / path, folder.resolve())
    (folder / "kustomization.yaml").write_text(json.dumps({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": "headroom-system",
        "resources": [relative("overlays/enforce")],
        "components": [relative(f"components/{each}") for each in components]}))
    done = command("kubectl", "kustomize", folder)
    assert done.returncode == 0, done.stdout
    return list(yaml.safe_load_all(done.stdout))


def pod(objects: list[dict]) -> dict:
    daemon_set, = (each for each in objects if each["kind"] == "DaemonSet")
    return daemon_set["spec"]["template"]["spec"]


def test_every_component_builds_alone(folder: Path) -> None:
    for component in COMPONENTS:
        build(folder, component)


def test_no_container_has_a_cpu_limit(folder: Path) -> None:
    for container in pod(build(folder))["containers"]:
        limits = container["resources"]["limits"]
        assert "memory" in limits and "cpu" not in limits, container["name"]


def test_probes_name_a_port_of_their_container(folder: Path) -> None:
    for container in pod(build(folder))["containers"]:
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            named = container[probe].get("httpGet", {}).get("port")
            assert named is None or named in ports, (container["name"], probe)


def test_the_bus_is_optional(folder: Path) -> None:
    volume, = (each for each in pod(build(folder))["volumes"] if each["name"] == "system-bus")
    assert volume["hostPath"] == {"path": "/run/dbus", "type": "DirectoryOrCreate"}, volume


def test_kubelet_paths_replace_the_host_path_alone(folder: Path) -> None:
    for component, path in (("kubelet-path-k0s", "/var/lib/k0s/kubelet"),
                            ("kubelet-path-microk8s", "/var/snap/microk8s/common/var/lib/kubelet")):
        spec = pod(build(folder, component))
        volume, = (each for each in spec["volumes"] if each["name"] == "kubelet")
        mount, = (each for each in spec["containers"][0]["volumeMounts"] if each["name"] == "kubelet")
        assert volume["hostPath"]["path"] == path and mount["mountPath"] == "/var/lib/kubelet", (volume, mount)


def test_openshift_allows_the_capabilities_that_are_added(folder: Path) -> None:
    objects = build(folder, "openshift")
    constraints, = (each for each in objects if each["kind"] == "SecurityContextConstraints")
    spec = pod(objects)
    assert set(constraints["allowedCapabilities"]) == set(spec["containers"][0]["securityContext"]["capabilities"]["add"])
    for container in spec["containers"]:
        assert container["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}, container["name"]


def archive(folder: Path) -> Path:
    done = command("make", "-C", ROOT, "dist", env={**os.environ, "MAKEFLAGS": ""})
    assert done.returncode == 0, done.stdout
    packed = re.search(r"build/dist/\S+\.tar\.gz", done.stdout)
    assert packed, done.stdout
    with tarfile.open(ROOT / packed[0]) as tar:
        tar.extractall(folder)
    return next(folder.glob("headroom-*/install.sh"))


def test_the_archive_installs_and_uninstalls(folder: Path) -> None:
    script, root = archive(folder), folder / "root"
    environment = {**os.environ, "DESTDIR": str(root)}
    done = command(script, env=environment)
    assert done.returncode == 0, done.stdout
    done = command(root / "usr/sbin/headroomd", "--version")
    assert done.returncode == 0, done.stdout
    settings = root / "etc/headroom/headroom.yaml"
    settings.write_text("changed\n")
    assert command(script, env=environment).returncode == 0 and settings.read_text() == "changed\n", "the configuration is kept"
    assert command(script, "--uninstall", env=environment).returncode == 0
    left = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    assert left and all(name.startswith("etc/headroom/") for name in left), left


def test_an_old_glibc_is_refused_with_one_line(folder: Path) -> None:
    script, tools = archive(folder), folder / "tools"
    tools.mkdir()
    (tools / "getconf").write_text("#!/bin/sh\necho glibc 2.35\n")
    (tools / "getconf").chmod(0o755)
    done = command(script, env={"PATH": f"{tools}:{os.environ['PATH']}", "DESTDIR": str(folder / "root")})
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and "2.35" in done.stdout, done.stdout
    assert not (folder / "root").exists(), "nothing is installed"


def run() -> list[tuple[str, str, str]]:
    rows = []
    for name, test in [(name, test) for name, test in globals().items() if name.startswith("test_")]:
        with tempfile.TemporaryDirectory(prefix="headroom-test-packaging-") as folder:
            try:
                test(Path(folder))
                rows.append((name, "passed", ""))
            except Exception as error:  # a failed assertion, or a tool that is missing
                rows.append((name, "failed", f"{type(error).__name__}: {error}"))
        print(f"{rows[-1][1]:6} {name}", file=sys.stderr)
    return rows
