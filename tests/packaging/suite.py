# SPDX-License-Identifier: Apache-2.0
"""The portable archive and the kustomize components. Nothing is fetched, and nothing is installed outside a temporary folder."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = sorted(path.parent.name for path in (ROOT / "kubernetes/components").glob("*/kustomization.yaml"))


class Skip(Exception):
    """Says why a test cannot run here."""


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


@functools.cache
def packed() -> Path:
    done = command("make", "-C", ROOT, "dist", env={**os.environ, "MAKEFLAGS": ""})
    assert done.returncode == 0, done.stdout
    path, = (ROOT / "build/dist").glob("headroom-*-linux-*.tar.gz")
    return path


def archive(folder: Path) -> Path:
    """install.sh of the unpacked portable archive."""
    with tarfile.open(packed()) as tar:
        tar.extractall(folder)
    return next(folder.glob("headroom-*/install.sh"))


def system(folder: Path) -> Path:
    """A root directory with the folders that every system has."""
    root = folder / "root"
    for name in ("etc", "run", "usr/bin", "usr/sbin", "usr/share/man/man8", "var/lib", "var/log"):
        (root / name).mkdir(parents=True)
    (root / "etc/hostname").write_text("node\n")
    return root


def tree(root: Path) -> set[tuple]:
    return {(str(path.relative_to(root)), path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in root.rglob("*")}


def run_script(script: Path, root: Path, *words: str) -> subprocess.CompletedProcess:
    return command(script, *words, env={**os.environ, "DESTDIR": str(root)})


def refused(done: subprocess.CompletedProcess, reason: str) -> None:
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and reason in done.stdout, done.stdout


@contextlib.contextmanager
def mounted(place: Path, options: str):
    done = command("mount", "-t", "tmpfs", "-o", options, "headroom-test", place)
    if done.returncode:
        raise Skip(f"mounting is not permitted here: {done.stdout.strip()}")
    try:
        yield
    finally:
        command("umount", "-l", place)


def test_the_archive_leaves_nothing_behind(folder: Path) -> None:
    script, root = archive(folder), system(folder)
    before = tree(root)
    for times in range(2):
        done = run_script(script, root)
        assert done.returncode == 0, (times, done.stdout)
    assert not list(root.rglob("*.headroom-new")) and tree(root) != before
    for program in ("sbin/headroomd", "sbin/headroom-kube", "bin/headroomctl", "libexec/headroom-commands"):
        done = command(root / "usr" / program, "--version")
        assert done.returncode == 0, done.stdout
    done = run_script(script, root, "--uninstall")
    assert done.returncode == 0 and "Kept" not in done.stdout, done.stdout
    assert tree(root) == before, tree(root) ^ before


def test_what_an_operator_wrote_is_never_removed(folder: Path) -> None:
    script, root = archive(folder), system(folder)
    assert run_script(script, root).returncode == 0
    settings, drop_in = root / "etc/headroom/headroom.yaml", root / "etc/headroom/headroom.yaml.d/mine.yaml"
    settings.write_text("changed\n")
    drop_in.write_text("mine\n")
    record, socket = root / "var/log/headroom/evictions.jsonl", root / "run/headroom/state"
    for written in (record, socket):
        written.parent.mkdir()
        written.write_text("written by headroomd\n")
    assert run_script(script, root).returncode == 0 and settings.read_text() == "changed\n", "the configuration is kept"
    done = run_script(script, root, "--uninstall")
    assert done.returncode == 0 and "Kept" in done.stdout and "/var/log/headroom" in done.stdout, done.stdout
    assert record.exists() and not socket.parent.exists() and not (root / "usr/lib").exists()
    assert run_script(script, root).returncode == 0
    assert run_script(script, root, "--purge").returncode == 0
    assert settings.read_text() == "changed\n" and drop_in.read_text() == "mine\n" and not record.exists()


def test_a_later_archive_removes_what_it_no_longer_has(folder: Path) -> None:
    script, root = archive(folder), system(folder)
    before = tree(root)
    old = script.parent / "files/usr/share/headroom/old"
    old.write_text("old\n")
    assert run_script(script, root).returncode == 0 and (root / "usr/share/headroom/old").exists()
    old.unlink()
    assert run_script(script, root).returncode == 0 and not (root / "usr/share/headroom/old").exists()
    assert run_script(script, root, "--uninstall").returncode == 0 and tree(root) == before


def test_a_refused_installation_changes_nothing(folder: Path) -> None:
    script, root, tools = archive(folder), system(folder), folder / "tools"
    tools.mkdir()
    before = tree(root)
    for tool, answer, reason in (("getconf", "glibc 2.35", "this system has 2.35"), ("uname", "riscv64", "this machine is riscv64")):
        (tools / tool).write_text(f"#!/bin/sh\necho {answer}\n")
        (tools / tool).chmod(0o755)
        refused(command(script, env={"PATH": f"{tools}:{os.environ['PATH']}", "DESTDIR": str(root)}), reason)
        (tools / tool).unlink()
    refused(run_script(script, root, "--uninstall"), "this script did not install headroom")
    (script.parent / "files/usr/lib/headroom/libbpf.so.1").rename(folder / "libbpf.so.1")
    if command("ldconfig", "-p").stdout.count("libbpf.so.1") == 0:
        refused(run_script(script, root), "libbpf.so.1")
    (folder / "libbpf.so.1").rename(script.parent / "files/usr/lib/headroom/libbpf.so.1")
    assert tree(root) == before
    (root / "usr/sbin/headroomd").write_text("of a package\n")
    before = tree(root)
    refused(run_script(script, root), "was not installed by this script")
    assert tree(root) == before


def test_a_read_only_usr_is_one_line(folder: Path) -> None:
    script, root = archive(folder), system(folder)
    with mounted(root / "usr", "ro"):
        before = tree(root)
        refused(run_script(script, root), "Read-only file system")
        assert tree(root) == before


def test_a_full_disk_is_one_line(folder: Path) -> None:
    script, root = archive(folder), folder / "root"
    root.mkdir()
    with mounted(root, "size=8m"):
        refused(run_script(script, root), "No space left on device")
        assert not list(root.iterdir()), list(root.rglob("*"))


def test_only_root_may_install(folder: Path) -> None:
    script = archive(folder)
    folder.chmod(0o755)
    for words in ((), ("--uninstall",)):
        refused(command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", script, *words), "run this as root")


def test_the_archive_brings_its_libraries_and_lists_them(folder: Path) -> None:
    files = archive(folder).parent / "files"
    needed = {}
    for program in ("sbin/headroomd", "sbin/headroom-kube", "bin/headroomctl"):
        for line in command("ldd", files / "usr" / program).stdout.splitlines():
            name, _, place = line.strip().partition(" => ")
            needed[name] = Path(place.partition(" ")[0])
    own = {name for name, place in needed.items() if place.is_relative_to(files) or "/usr/lib/headroom/" in str(place)}
    assert {"libbpf.so.1", "libmicrohttpd.so.12", "libcurl.so.4"} <= own, needed
    assert own == {path.name for path in (files / "usr/lib/headroom").iterdir()}
    assert not {"libc.so.6", "libsystemd.so.0", "libcap.so.2"} & own and "libstdc++.so.6" not in needed, needed
    document = json.loads((files / "usr/share/doc/headroom/headroom.spdx.json").read_text())
    listed = {(row["relationshipType"], row["relatedSpdxElement"].removeprefix("SPDXRef-deb-")) for row in document["relationships"]}
    for row in (("DYNAMIC_LINK", "libbpf1"), ("DYNAMIC_LINK", "libssl3"), ("STATIC_LINK", "libyaml-cpp-dev"),
                ("STATIC_LINK", "libstdc++-12-dev"), ("STATIC_LINK", "nlohmann-json3-dev")):
        assert row in listed, (row, listed)
    assert not any(name == "libsystemd-dev" for _, name in listed), "only the code of the programs"
    packages = {package["name"] for package in document["packages"]} - {"headroom"}
    assert packages == {path.name for path in (files / "usr/share/doc/headroom/licences").iterdir()}


def test_the_source_archive_has_what_git_tracks(_folder: Path) -> None:
    source, = (path for path in packed().parent.glob("headroom-*.tar.gz") if "-linux-" not in path.name)
    with tarfile.open(source) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    tracked = set(command("git", "-C", ROOT, "ls-files").stdout.splitlines())
    assert names == tracked, names ^ tracked


def test_the_packages_purge_keeps_what_an_operator_wrote(folder: Path) -> None:
    """dpkg itself removes headroom.yaml."""
    root = system(folder)
    kept, removed = root / "etc/headroom/headroom.yaml.d/mine.yaml", root / "var/log/headroom/evictions.jsonl"
    for file in (kept, removed):
        file.parent.mkdir(parents=True)
        file.write_text("text\n")
    script = (ROOT / "debian/headroom.postrm").read_text().replace(" /", f" {root}/")
    done = command("sh", "-c", script, "postrm", "purge")
    assert done.returncode == 0 and kept.exists() and not removed.parent.exists(), done.stdout


def run() -> list[tuple[str, str, str]]:
    rows = []
    for name, test in [(name, test) for name, test in globals().items() if name.startswith("test_")]:
        with tempfile.TemporaryDirectory(prefix="headroom-test-packaging-") as folder:
            try:
                test(Path(folder))
                rows.append((name, "passed", ""))
            except Skip as reason:
                rows.append((name, "skipped", str(reason)))
            except Exception as error:  # a failed assertion, or a tool that is missing
                rows.append((name, "failed", f"{type(error).__name__}: {error}"))
        print(f"{rows[-1][1]:6} {name}", file=sys.stderr)
    return rows
