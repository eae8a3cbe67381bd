# SPDX-License-Identifier: Apache-2.0
"""Prometheus and promtool from this release's Debian package, beside the system and not on it."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from . import cache
from .debian import Archive, BuildError, require_tools

HERE = Path(__file__).resolve().parent
PACKAGE = "prometheus"


def suite() -> str:
    words = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return words.get("VERSION_CODENAME", "bookworm")


def binaries(refresh: bool = False) -> Path:
    """The folder with prometheus and promtool."""
    recipe = cache.digest(suite(), PACKAGE, HERE / "debian.py")
    return cache.obtain("prometheus", recipe, _build, refresh) / "tree/usr/bin"


def _build(out: Path) -> None:
    require_tools()
    with cache.phase(f"prometheus from {suite()}"):
        work = out / "apt"
        Archive(suite(), work).unpack(PACKAGE, out / "tree")
    if not (out / "tree/usr/bin/promtool").exists():
        raise BuildError("extract prometheus: the package has no promtool")


def promtool(*words, data: str | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(binaries() / "promtool"), *map(str, words)], input=data, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class Prometheus:
    """A Prometheus of our own on this machine: scrapes TARGET, or as SCRAPE says, every two seconds, with RULES."""

    def __init__(self, folder: Path, target: str, rules, port: int, scrape=None):
        self.folder, self.port = folder, port
        config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
                  "rule_files": [str(Path(rule).resolve()) for rule in rules],
                  "scrape_configs": scrape or [{"job_name": "headroom", "static_configs": [{"targets": [target]}]}]}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text(json.dumps(config, indent=1))  # JSON is YAML

    def __enter__(self):
        words = [str(binaries() / "prometheus"), f"--config.file={self.folder}/prometheus.yml",
                 f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}",
                 "--log.level=warn"]
        with open(self.folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError("prometheus did not start:\n" + (self.folder / "prometheus.log").read_text())
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path: str, **arguments) -> dict:
        query = urllib.parse.urlencode(arguments)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode(errors='replace')}") from None

    def query(self, expression: str) -> list[dict]:
        return self.get("query", query=expression)["result"]

    def value(self, expression: str) -> float | None:
        result = self.query(expression)
        return float(result[0]["value"][1]) if result else None
