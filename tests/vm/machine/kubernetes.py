# SPDX-License-Identifier: Apache-2.0
"""What a cluster of one node is made of, from Debian alone, built once into the cache.

bookworm packages kubectl, etcd, containerd and runc, and of Kubernetes itself the source: the API server, its
controllers, the scheduler and the kubelet are built from that by bookworm's Go, which lies beside the system and not on
it. Ten minutes of two processors; with GOCACHE set, a build that was broken off goes on where it was.
"""

import os
import re
import shutil
from pathlib import Path

from . import cache
from .debian import KEYRING, Archive, BuildError, mirror, require_tools, run

SUITE, SOURCE = "bookworm", "kubernetes"
GO = ("golang-1.19-go", "golang-1.19-src")
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
PACKAGED = {  # package → what of it is taken
    "kubernetes-client": ("usr/bin/kubectl",),
    "etcd-server": ("usr/bin/etcd",),
    "containerd": ("usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr"),
    "runc": ("usr/sbin/runc",),
}
# What of the source's own dependencies no newer Go builds right, and the package that has a later one. reflect2 before
# 1.0.2 calls into the runtime as it was before Go 1.18: now and then the API server dies of that.
RENEWED = {"golang-github-modern-go-reflect2-dev": "github.com/modern-go/reflect2"}
# Neither clouds nor Docker: a third of the packages.
TAGS = "providerless,dockerless"
PACKAGE = "k8s.io/kubernetes"
VERSIONS = ("client-go/pkg/version", "component-base/version")  # the linker sets the version in these packages
OPENAPI = "pkg/generated/openapi"


def programs() -> Path:
    """The folder of all of them."""
    return cache.obtain("kubernetes", cache.digest(Path(__file__)), _build) / "bin"


def _build(out: Path) -> None:
    require_tools()
    if not shutil.which("dpkg-source"):
        run("install dpkg-source", "apt-get", "-qy", "--no-install-recommends", "install", "dpkg-dev")
    archive, bin_ = Archive(SUITE, out / "apt"), out / "bin"
    bin_.mkdir()
    with cache.phase("kubernetes: packages"):
        _take_packaged(archive, out / "packaged", bin_)
        for package in GO:
            archive.unpack(package, out / "go")
        for package in RENEWED:
            archive.unpack(package, out / "renewed")
    with cache.phase("kubernetes: source"):
        source = _fetch_source(archive, out)
        for path in RENEWED.values():
            shutil.rmtree(source / "vendor" / path)
            shutil.copytree(out / "renewed/usr/share/gocode/src" / path, source / "vendor" / path)
    go = Go(next((out / "go/usr/lib").glob("go-*")), out)
    with cache.phase("kubernetes: what is generated"):
        _generate_openapi(go, source, out)
    for component in COMPONENTS:
        with cache.phase(f"kubernetes: {component}"):
            go.build(source, bin_, f"./cmd/{component}", f"-tags={TAGS}", f"-ldflags=-s -w {_version_words(out)}")
    for leftover in ("apt", "go", "gopath", "go-cache", "packaged", "renewed", "tools"):
        shutil.rmtree(out / leftover, ignore_errors=True)


def _take_packaged(archive: Archive, tree: Path, bin_: Path) -> None:
    for package, files in PACKAGED.items():
        archive.unpack(package, tree)
        for file in files:
            shutil.copy(tree / file, bin_)


def _fetch_source(archive: Archive, out: Path) -> Path:
    """In the place where Go without modules looks for it."""
    (archive.work / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    run("read the index of sources", "apt-get", "-q", *archive.options, "-oAPT::Update::Error-Mode=any", "update")
    run("download the source", "apt-get", "-q", *archive.options, "--download-only", "source", SOURCE, cwd=archive.work)
    dsc = next(archive.work.glob("*.dsc"))
    source = out / "gopath/src" / PACKAGE
    source.parent.mkdir(parents=True)
    # apt has checked it against the signed index.
    run("unpack the source", "dpkg-source", "--no-check", "-x", dsc, source)
    (out / "version").write_text(re.search(r"(?:really)?([0-9.]+)-[^-]*$", dsc.stem)[1] + "\n")
    return source


def _version_words(out: Path) -> str:
    version = (out / "version").read_text().strip()
    major, minor, *_ = version.split(".")
    settings = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {PACKAGE}/vendor/k8s.io/{package}.{key}={value}"
                    for package in VERSIONS for key, value in settings.items())


class Go:
    """Debian's Go out of its place, without modules: everything Kubernetes needs is in its own source."""

    def __init__(self, root: Path, out: Path):
        self.root, self.tools = root, out / "tools"
        self.environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "HOME": str(out), "GOROOT": str(root),
                            "GOPATH": str(out / "gopath"), "GO111MODULE": "off", "CGO_ENABLED": "0",
                            "GOGC": "800",  # the compiler lives for seconds: let it not collect
                            "GOCACHE": os.environ.get("GOCACHE") or str(out / "go-cache")}

    def build(self, source: Path, to: Path, package: str, *flags: str) -> None:
        to.mkdir(exist_ok=True)
        # -trimpath: what is compiled is the same wherever the source lies.
        run(f"build {package}", self.root / "bin/go", "build", "-trimpath", f"-p={os.cpu_count()}", *flags, "-o", f"{to}/", package,
            cwd=source, env=self.environment)


def _generate_openapi(go: Go, source: Path, out: Path) -> None:
    """The one generated file that the source has not: the API server's description of all of its kinds."""
    go.build(source, go.tools, "./vendor/k8s.io/code-generator/cmd/openapi-gen")
    packages = ",".join(f"{PACKAGE}/{folder}" for folder in _described(source))
    run("generate the API's description", go.tools / "openapi-gen", "-i", packages, "-p", f"{PACKAGE}/{OPENAPI}",
        "-O", "zz_generated.openapi", "-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt",
        "-r", out / "tools/violations", cwd=source, env=go.environment)
    if not (source / OPENAPI / "zz_generated.openapi.go").exists():
        raise BuildError("generate the API's description: no file came of it")


def _described(source: Path) -> list[str]:
    """Folders with types that say they are part of it."""
    vendored = [folder for folder in sorted((source / "vendor/k8s.io").iterdir())
                if folder.name not in ("code-generator", "sample-apiserver")]
    found = set()
    for folder in (source / "cmd", source / "pkg", source / "plugin", *vendored):
        for at, _, files in os.walk(folder):
            if any(_says_so(Path(at, name)) for name in files if name.endswith(".go")):
                found.add(os.path.relpath(at, source))
    return sorted(found)


def _says_so(file: Path) -> bool:
    return re.search(rb"^\s*// *\+k8s:openapi-gen=", file.read_bytes(), re.M) is not None
