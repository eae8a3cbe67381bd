# SPDX-License-Identifier: Apache-2.0
"""The Debian packages that programs were linked from, and the SPDX document that lists them."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

from elf_libraries import is_native, machine_of, root_of


class PackageError(Exception):
    """Says which tool failed, and what it printed."""


def compact(value) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def output_of(*command: str) -> str:
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise PackageError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def query(root: Path, *words: str) -> subprocess.CompletedProcess:
    """dpkg-query on the packages that are unpacked below ROOT."""
    return subprocess.run(["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def package_of(path: Path, root: Path = Path("/")) -> str | None:
    """The Debian package that owns a file below ROOT; its path may go through the link /lib -> /usr/lib."""
    for name in (path, path.resolve()):
        inside = "/" + str(name.relative_to(root)) if name.is_relative_to(root) else str(name)
        for known in (inside, inside.removeprefix("/usr")):
            done = query(root, "--search", known)
            if done.returncode == 0:
                return done.stdout.splitlines()[0].split(": ")[0].split(",")[0]
    return None


def packages_of(files, root: Path = Path("/")) -> list[dict]:
    names = sorted({package for file in files if (package := package_of(file, root))})
    rows = []
    for name in names:
        done = query(root, "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\t${source:Package}", name)
        if done.returncode != 0:
            raise PackageError(f"read the version of {name}: {done.stderr.strip()}")
        package, version, architecture, source = done.stdout.split("\t")
        rows.append({"name": package, "version": version, "architecture": architecture, "source": source})
    return rows


def strip(program: Path, out: Path) -> None:
    tool = "strip" if is_native(program) else f"{machine_of(program)}-linux-gnu-strip"
    output_of(tool, "--strip-unneeded", "-o", str(out), str(program))


def linked_in(program: Path) -> list[Path]:
    """Folders of headers whose code is in the program itself: by its line tables, so before it is stripped."""
    tables = output_of("readelf", "--debug-dump=rawline", str(program))
    # A cross compiler has C++'s own headers in a folder of its own.
    folders = {Path("/usr" + name) for name in re.findall(r"\s/usr(?:/[a-z0-9_]+-linux-gnu)?(/include/\S+)$", tables, re.M)}
    if not folders:
        raise PackageError(f"{program}: no line tables: build it with -g1")
    return sorted(folders)


def static_packages(programs: list[Path], shared: list[dict]) -> list[dict]:
    """The packages whose code is in the programs; those that only declare what a shared library has are not."""
    declared = {package["source"] for package in shared}
    root = root_of(programs[0])
    rows = packages_of({root / str(folder).lstrip("/") for program in programs for folder in linked_in(program)}, root)
    return [row for row in rows if row["source"] not in declared]


def spdx(tool: str, tag: str, version: str, shared: list[dict], static: list[dict], created: str) -> dict:
    """SHARED are the packages of the libraries beside the programs, STATIC those whose code is in the programs."""
    def entry(name: str, revision: str, reference: str, supplier: str) -> dict:
        return {"SPDXID": reference, "name": name, "versionInfo": revision, "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
                "copyrightText": "NOASSERTION", "supplier": supplier}
    ours = entry("headroom", version, "SPDXRef-headroom", "NOASSERTION") | {"licenseDeclared": "Apache-2.0"}
    others = []
    packages = [*shared, *(package for package in static if package not in shared)]
    for package in packages:
        row = entry(package["name"], package["version"], f"SPDXRef-deb-{package['name']}", "Organization: Debian")
        locator = f"pkg:deb/debian/{package['name']}@{package['version']}?arch={package['architecture']}"
        row["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]
        others.append(row)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": tag,
            "documentNamespace": f"https://spdx.org/spdxdocs/headroom-{version}-{digest(compact(packages))[7:23]}",
            "creationInfo": {"created": created, "creators": [f"Tool: {tool}"]},
            "packages": [ours, *others],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                               "relatedSpdxElement": "SPDXRef-headroom"}] +
                             [{"spdxElementId": "SPDXRef-headroom",
                               "relationshipType": "DYNAMIC_LINK" if package in shared else "STATIC_LINK",
                               "relatedSpdxElement": f"SPDXRef-deb-{package['name']}"} for package in packages]}
