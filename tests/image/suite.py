# SPDX-License-Identifier: Apache-2.0
"""The image of `make image`: what it holds, that its programs start in it, and that skopeo reads it. Nothing is fetched."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import elf_libraries  # noqa: E402

IMAGE = ROOT / "build/image/headroom.tar"
PROGRAMS = ("usr/sbin/headroomd", "usr/sbin/headroom-kube", "usr/bin/headroomctl")


def command(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def build(out: Path) -> None:
    programs = [ROOT / "build" / Path(name).name for name in PROGRAMS]
    done = command(ROOT / "tools/oci-image", "--tag", "headroom:test", "--version", "0.0.0", "--out", out, *programs,
                   env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    assert done.returncode == 0, done.stdout


def blobs(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def unpack(archive: Path, root: Path) -> None:
    files = blobs(archive)
    layers = json.loads(files["manifest.json"])[0]["Layers"]
    for layer in layers:
        done = subprocess.run(["tar", "xz", "-C", root], input=files[layer], check=False)
        assert done.returncode == 0, layer


def test_every_blob_has_the_digest_of_its_name(folder: Path) -> None:
    files = blobs(folder / "image.tar")
    names = [name for name in files if name.startswith("blobs/sha256/")]
    assert len(names) == 3, names
    for name in names:
        assert hashlib.sha256(files[name]).hexdigest() == name.rpartition("/")[2], name


def test_the_same_programs_give_the_same_bytes(folder: Path) -> None:
    build(folder / "again.tar")
    assert (folder / "again.tar").read_bytes() == (folder / "image.tar").read_bytes()


def test_its_programs_start_in_it(folder: Path) -> None:
    """With the image's own loader and libraries, and nothing else."""
    root = folder / "root"
    root.mkdir()
    unpack(folder / "image.tar", root)
    for program in PROGRAMS:
        done = command("chroot", root, f"/{program}", "--version")
        assert done.returncode == 0 and re.fullmatch(r"\S+ \d+\.\d+\.\d+\n", done.stdout), (program, done.stdout)
    assert not (root / "bin/sh").exists() and not (root / "usr/bin/sh").exists(), "no shell"


def test_skopeo_reads_it_in_both_forms(folder: Path) -> None:
    for form in ("oci-archive", "docker-archive"):
        done = command("skopeo", "inspect", f"{form}:{folder / 'image.tar'}")
        assert done.returncode == 0, done.stdout
        assert json.loads(done.stdout)["Labels"]["org.opencontainers.image.version"] == "0.0.0", done.stdout


def test_its_list_of_packages_names_every_library(folder: Path) -> None:
    document = json.loads((folder / "image.spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3", document
    packages = {package["name"] for package in document["packages"]}
    root = folder / "listed"
    root.mkdir()
    unpack(folder / "image.tar", root)
    licences = {path.parent.name for path in (root / "usr/share/doc").glob("*/copyright")}
    assert {"headroom", "libc6", "libsystemd0", "libbpf1", "libyaml-cpp-dev", "libspdlog-dev"} <= packages, packages
    assert licences == packages - {"headroom"}, licences ^ packages


def test_a_search_finds_what_the_loader_loads(_folder: Path) -> None:
    """Libraries of another architecture are searched for, because their loader does not run here."""
    for name in PROGRAMS:
        program = ROOT / "build" / Path(name).name
        loaded = {Path(path).name for path in elf_libraries._by_loader(program)}
        found = {Path(path).name for path in elf_libraries._by_search(program, Path("/"))}
        assert found == loaded, (name, found ^ loaded)


def test_a_missing_program_is_one_line(folder: Path) -> None:
    done = command(ROOT / "tools/oci-image", "--tag", "a:b", "--version", "1", "--out", folder / "none.tar", folder / "missing")
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and "missing" in done.stdout, done.stdout
    assert not (folder / "none.tar").exists()


def test_the_containerfile_builds_both_packages_from_source(_folder: Path) -> None:
    """It cannot be run without a registry. Its stages, and every path that it copies, are checked."""
    text = (ROOT / "kubernetes/Containerfile").read_text()
    stages = re.findall(r"^FROM \S+(?: AS (\w+))?$", text, re.M)
    assert stages == ["build", ""], stages
    assert "headroom_*.deb" in text and "headroom-kube_*.deb" in text, "the DaemonSet runs both programs"
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, re.M):
        assert (ROOT / source).exists(), source
    for line in text.splitlines():
        assert not re.match(r"\s*(ADD|USER root|MAINTAINER)\b", line), line
        assert "apt-get install" not in line or "--no-install-recommends" in line, line
    assert text.rstrip().splitlines()[-1].startswith("CMD ["), "programs start without a shell"


def run() -> list[tuple[str, str, str]]:
    rows = []
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    with tempfile.TemporaryDirectory(prefix="headroom-test-image-") as first:
        build(Path(first) / "image.tar")
        for name, test in tests.items():
            with tempfile.TemporaryDirectory(prefix="headroom-test-image-", dir=first) as own:
                folder = Path(own)
                for file in ("image.tar", "image.spdx.json"):
                    (folder / file).symlink_to(Path(first) / file)
                try:
                    test(folder)
                    rows.append((name, "passed", ""))
                except Exception as error:  # a failed assertion, or a tool that is missing
                    rows.append((name, "failed", f"{type(error).__name__}: {error}"))
            print(f"{rows[-1][1]:6} {name}", file=sys.stderr)
    return rows
