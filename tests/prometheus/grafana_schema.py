# SPDX-License-Identifier: Apache-2.0
"""Dashboards against the types that Grafana publishes, with the TypeScript compiler. Both come from npm."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from machine import cache

PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9.3")
TYPES = "@grafana/schema/dist/types/raw/dashboard/x/types.gen"
ENUMS = {'"mode": "absolute"': '"mode": ThresholdsMode.Absolute', '"type": "value"': '"type": MappingType.ValueToText'}


class Unavailable(Exception):
    """The reason why the check cannot run."""


def _install(out: Path) -> None:
    (out / "package.json").write_text('{"private": true}')
    npm = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", *PACKAGES], cwd=out,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=40, check=False)
    if npm.returncode != 0:
        complaint = [line for line in npm.stdout.splitlines() if line.startswith("npm error")][:1]
        raise Unavailable(f"npm cannot install {' '.join(PACKAGES)}: {' '.join(complaint)}")


def packages() -> Path:
    if not shutil.which("npm") or not shutil.which("node"):
        raise Unavailable("npm or node is not installed")
    try:
        return cache.obtain("grafana-schema", cache.digest(*PACKAGES), _install, False) / "node_modules"
    except subprocess.TimeoutExpired:
        raise Unavailable("npm does not answer") from None


def source(boards: list[dict], modules: Path) -> str:
    lines = [f'import {{ Dashboard, MappingType, ThresholdsMode }} from "{modules}/{TYPES}";']
    for number, board in enumerate(boards):
        for annotation in board["annotations"]["list"]:  # fields of the data source, which the schema leaves open
            for field in ("expr", "titleFormat", "step"):
                annotation.pop(field, None)
        text = json.dumps(board)
        for plain, typed in ENUMS.items():
            text = text.replace(plain, typed)
        lines.append(f"export const board{number}: Dashboard = {text};")
    return "\n".join(lines)


def errors(boards: list[dict]) -> str:
    """What the compiler finds; empty: nothing."""
    modules = packages()
    with tempfile.TemporaryDirectory(prefix="headroom-test-") as folder:
        file = Path(folder) / "boards.ts"
        file.write_text(source(boards, modules))
        compiled = subprocess.run(["node", modules / "typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext",
                                   "--moduleResolution", "bundler", file], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
    return compiled.stdout if compiled.returncode else ""
