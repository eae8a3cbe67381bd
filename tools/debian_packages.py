# SPDX-License-Identifier: Apache-2.0
"""The Debian packages that programs were linked from, and the SPDX document that lists them."""

import hashlib
import json
import re
import subprocess
from pathlib import Path


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


def libraries(program: Path) -> dict[str, Path]:
    """Path without the leading slash → file here: the loader and every library, under the names by which they are loaded."""
    found = {}
    for line in output_of("ldd", str(program)).splitlines():
        words = line.split()
        if "not" in words and "found" in words:
            raise PackageError(f"{program}: {words[0]} is not installed here")
        path = next((word for word in words if word.startswith("/")), None)  # the vdso has none
        if path:
            found[path.lstrip("/")] = Path(path)
    return found


def package_of(path: Path) -> str | None:
    """The Debian package that owns a file; its path may go through the link /lib -> /usr/lib."""
    for name in (path, path.resolve(), Path(str(path.resolve()).removeprefix("/usr"))):
        done = subprocess.run(["dpkg-query", "--search", str(name)], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return done.stdout.splitlines()[0].split(": ")[0].split(",")[0]
    return None


def packages_of(files) -> list[dict]:
    names = sorted({package for file in files if (package := package_of(file))})
    rows = []
    for name in names:
        fields = output_of("dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\t${source:Package}", name)
        package, version, architecture, source = fields.split("\t")
        rows.append({"name": package, "version": version, "architecture": architecture, "source": source})
    return rows


def linked_in(program: Path) -> list[Path]:
    """Folders of headers whose code is in the program itself: by its line tables, so before it is stripped."""
    tables = output_of("readelf", "--debug-dump=rawline", str(program))
    folders = {Path(name) for name in re.findall(r"\s(/usr/include/\S+)$", tables, re.M)}
    if not folders:
        raise PackageError(f"{program}: no line tables: build it with -g1")
    return sorted(folders)


def static_packages(programs: list[Path], shared: list[dict]) -> list[dict]:
    """The packages whose code is in the programs; those that only declare what a shared library has are not."""
    declared = {package["source"] for package in shared}
    rows = packages_of({folder for program in programs for folder in linked_in(program)})
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
