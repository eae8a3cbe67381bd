# SPDX-License-Identifier: Apache-2.0
"""The RPM packages of `make rpm`: contents, scripts, dependencies, and what installing and removing them leaves in a root
directory. Scripts are run with a systemctl that only records; nothing is installed on this machine."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCH = os.uname().machine


def query(package: str, *words: str) -> list[str]:
    path, = (each for each in (ROOT / "build/rpm/RPMS").rglob("*.rpm") if each.name.rsplit("-", 2)[0] == package)
    done = subprocess.run(["rpm", "--query", *words, "--package", path], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_installed_file_is_in_one_package(_folder: Path) -> None:
    lists = {name: set(query(name, "--list")) for name in ("headroom", "headroom-kube", "headroom-dashboards")}
    assert {"/usr/sbin/headroomd", "/usr/bin/headroomctl", "/usr/lib/systemd/system/headroomd.service",
            "/usr/lib/systemd/system/headroom.slice",
            "/usr/libexec/headroom-commands", "/usr/lib/systemd/system/headroom-commands.socket",
            "/usr/lib/systemd/system/headroom-commands@.service", "/usr/share/headroom/headroom.schema.json",
            "/usr/share/zsh/site-functions/_headroomctl", "/etc/headroom/manifests"} <= lists["headroom"], lists["headroom"]
    assert {"/usr/sbin/headroom-kube", "/usr/lib/systemd/system/headroom-kube.service"} <= lists["headroom-kube"]
    assert any(name.endswith(".json") for name in lists["headroom-dashboards"])
    shared = {name for name in lists["headroom"] & (lists["headroom-kube"] | lists["headroom-dashboards"])}
    assert shared <= {"/usr/share/headroom"}, shared
    assert not any("vendor-completions" in name for names in lists.values() for name in names), "Debian's folder"
    modes = query("headroom", "--list", "--verbose")
    assert all(" root     root " in line for line in modes), modes


def test_the_configuration_is_kept(_folder: Path) -> None:
    assert query("headroom", "--configfiles") == ["/etc/headroom/headroom.yaml"]
    flags = query("headroom", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]")
    assert "/etc/headroom/headroom.yaml cn" in flags, flags


def test_dependencies(_folder: Path) -> None:
    needed = query("headroom", "--requires")
    for name in ("libbpf.so.1", "libmicrohttpd.so.12", "libsystemd.so.0"):
        assert any(line.startswith(f"{name}(") for line in needed), needed
    assert not any(line.startswith(("libcurl", "libyaml-cpp", "libspdlog", "libfmt")) for line in needed), needed
    version, = query("headroom", "--queryformat", "%{VERSION}-%{RELEASE}\n")
    kube = query("headroom-kube", "--requires")
    assert any(line.startswith("headroom") and line.endswith(f"= {version}") for line in kube), kube
    assert any(line.startswith("libcurl.so.4(") for line in kube), kube
    assert query("headroom-dashboards", "--queryformat", "%{ARCH}\n") == ["noarch"]


def scripts(package: str) -> dict[str, str]:
    return {name: "\n".join(query(package, "--queryformat", f"%{{{tag}}}\n"))
            for name, tag in (("post", "POSTIN"), ("preun", "PREUN"), ("postun", "POSTUN"))}


def recording_systemctl(folder: Path) -> Path:
    """The file that has what it was called with."""
    calls = folder / "calls"
    (folder / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    (folder / "systemctl").chmod(0o755)
    return calls


def test_scripts_enable_restart_and_stop(folder: Path) -> None:
    """By the argument that rpm gives: the number of versions that are installed afterwards."""
    calls = recording_systemctl(folder)
    for package, unit in (("headroom", "headroomd.service"), ("headroom-kube", "headroom-kube.service")):
        for script, argument, expected in (("post", 1, f"--no-reload preset {unit}\n"), ("post", 2, ""),
                                           ("preun", 0, f"--no-reload disable --now {unit}\n"), ("preun", 1, ""),
                                           ("postun", 1, f"try-restart {unit}\n"), ("postun", 0, "")):
            calls.write_text("")
            text = scripts(package)[script].replace("/usr/bin/systemctl", f"{folder}/systemctl")
            done = subprocess.run(["/bin/sh", "-e", "-c", text, script, str(argument)], env={"PATH": f"{folder}:/usr/bin:/bin"})
            assert done.returncode == 0 and calls.read_text() == expected, (package, script, argument, calls.read_text())


def test_the_empty_slice_is_stopped_when_the_package_is_gone(folder: Path) -> None:
    calls, events = recording_systemctl(folder), folder / "cgroup.events"
    text = scripts("headroom")["postun"].replace("/sys/fs/cgroup/headroom.slice/cgroup.events", str(events))
    text = text.replace("/usr/bin/systemctl", "/nowhere/systemctl")  # try-restart is another test's
    for populated, argument, expected in ((0, 0, "stop headroom.slice\n"), (1, 0, ""), (0, 1, "")):
        events.write_text(f"populated {populated}\nfrozen 0\n")
        calls.write_text("")
        done = subprocess.run(["/bin/sh", "-e", "-c", text, "postun", str(argument)], env={"PATH": f"{folder}:/usr/bin:/bin"})
        assert done.returncode == 0 and calls.read_text() == expected, (populated, argument, calls.read_text())


def test_removing_leaves_what_was_there(folder: Path) -> None:
    root = folder / "root"
    (root / "etc").mkdir(parents=True)
    packages = [each for each in (ROOT / "build/rpm/RPMS").rglob("*.rpm")]

    def rpm(*words) -> None:
        done = subprocess.run(["rpm", "--root", root, "--dbpath", "/database", "--nodeps", "--noscripts", *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout

    def left() -> set[str]:
        return {str(path.relative_to(root)) for path in root.rglob("*") if "database" not in path.parts}
    rpm("--install", *packages)
    program = root / "usr/sbin/headroomd"
    assert program.stat().st_mode & 0o777 == 0o755
    (root / "etc/headroom/headroom.yaml.d/mine.yaml").write_text("mine\n")
    rpm("--erase", "headroom", "headroom-kube", "headroom-dashboards")
    files = {name for name in left() if (root / name).is_file()}
    assert files == {"etc/headroom/headroom.yaml.d/mine.yaml"}, files


def run() -> list[tuple[str, str, str]]:
    rows = []
    for name, test in [(name, test) for name, test in globals().items() if name.startswith("test_")]:
        with tempfile.TemporaryDirectory(prefix="headroom-test-rpm-") as folder:
            try:
                test(Path(folder))
                rows.append((name, "passed", ""))
            except Exception as error:  # a failed assertion, or a tool that is missing
                rows.append((name, "failed", f"{type(error).__name__}: {error}"))
        print(f"{rows[-1][1]:6} {name}", file=sys.stderr)
    return rows
