# SPDX-License-Identifier: Apache-2.0
"""A browser to look at the page with: Debian's Chromium, driven by playwright, judged by axe; beside the tree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests/vm"))

from machine import cache  # noqa: E402

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
NODE = 18  # the oldest node playwright runs on


BUILT = ROOT / "build/test/page"  # not the build's own: what includes that would be compiled anew


class NoBrowser(Exception):
    """None can be had here; says why."""


def browser() -> str:
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise NoBrowser("no Chromium: apt-get install chromium-headless-shell")


def node() -> str:
    found = shutil.which("node")
    if not found or not shutil.which("npm"):
        raise NoBrowser("no node or npm: apt-get install nodejs npm")
    version = subprocess.run([found, "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout
    if int(version.strip().lstrip("v").split(".")[0]) < NODE:
        raise NoBrowser(f"node {version.strip()} is older than {NODE}")
    return found


def modules() -> Path:
    """The folder with playwright-core and axe-core, as package-lock.json has them."""
    recipe = cache.digest(HERE / "package.json", HERE / "package-lock.json")
    return cache.obtain("page-modules", recipe, _install) / "node_modules"


def _install(out: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, out)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=out, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise NoBrowser("npm cannot install playwright-core and axe-core: " + done.stdout.strip()[-300:])


def assemble() -> Path:
    """The folder with the page as headroomd serves it, made anew."""
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "userspace/report/page/web/assemble", BUILT], check=True)
    return BUILT


def look(script: str, *arguments: str, timeout: float = 600, **environment: str) -> list[dict]:
    """The rows [{name, status, reason}] a script of this folder writes."""
    command = [node(), str(HERE / script), *arguments]
    environment = {**os.environ, "PAGE_BROWSER": browser(), "PAGE_MODULES": str(modules()), **environment}
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{script}: status {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)
