# SPDX-License-Identifier: Apache-2.0
"""tests/kube/render_chart.go, built by Debian's Go with Debian's Sprig: Helm itself is not in Debian."""

import shutil
import subprocess
from pathlib import Path

from . import cache
from .debian import Archive, require_tools
from .kubernetes import GO, Go

SUITE = "bookworm"
SOURCE = Path(__file__).resolve().parents[2] / "kube/render_chart.go"
LIBRARIES = ("golang-github-masterminds-sprig-dev", "golang-github-masterminds-goutils-dev", "golang-github-masterminds-semver-dev",
             "golang-github-google-uuid-dev", "golang-github-huandu-xstrings-dev", "golang-github-imdario-mergo-dev",
             "golang-github-mitchellh-copystructure-dev", "golang-github-mitchellh-reflectwalk-dev",
             "golang-github-shopspring-decimal-dev", "golang-github-spf13-cast-dev", "golang-golang-x-crypto-dev",
             "golang-golang-x-sys-dev", "golang-k8s-sigs-yaml-dev", "golang-gopkg-yaml.v2-dev", "golang-gopkg-yaml.v3-dev")


def render(chart: Path, namespace: str, *values: Path) -> subprocess.CompletedProcess:
    recipe = cache.digest(SUITE, SOURCE, Path(__file__))
    program = cache.obtain("chart-renderer", recipe, _build) / "bin/render_chart"
    return subprocess.run([str(program), str(chart), namespace, *map(str, values)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


def _build(out: Path) -> None:
    require_tools()
    tree, work = out / "tree", out / "work"
    with cache.phase(f"render_chart, with Go and Sprig of {SUITE}"):
        archive = Archive(SUITE, out / "apt")
        for package in (*GO, *LIBRARIES):
            archive.unpack(package, tree)
        work.mkdir()
        shutil.copytree(tree / "usr/share/gocode", work / "gopath")
        shutil.copy(SOURCE, work / SOURCE.name)
        go = Go(next((tree / "usr/lib").glob("go-*")), work)
        go.build(work, out / "bin", SOURCE.name)
    for folder in (tree, work, out / "apt"):
        shutil.rmtree(folder)
