# SPDX-License-Identifier: Apache-2.0
"""The Debian archive, through the mirror and the trust this machine already has."""

import os
import re
import shutil
import subprocess
from pathlib import Path

# The archive keyring of bookworm (2023.3+deb12u1 and later) also holds the keys that sign trixie and sid.
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

TOOLS = {  # command we run → package that has it
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "mkswap": "util-linux",
    "setpriv": "util-linux",
    "xz": "xz-utils",
    "zstd": "zstd",
    "lz4": "lz4",
    "gcc": "gcc libc6-dev",
    "gpgv": "gpgv",
}


class BuildError(Exception):
    """The lab could not be built; says what was being done and what the tool answered."""


def run(doing: str, *command, **options) -> str:
    words = [str(word) for word in command]
    with subprocess.Popen(words, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options) as tool:
        try:
            output, _ = tool.communicate()
        except BaseException:
            tool.terminate()  # not SIGKILL: mmdebstrap has temporary files and mounts of its own to undo
            raise
    if tool.returncode != 0:
        tail = "\n".join(output.splitlines()[-25:])
        raise BuildError(f"{doing}: {words[0]} ended with {tool.returncode}\n{tail}")
    return output


def require_tools() -> None:
    """Install what is missing: a fresh Debian has no mmdebstrap and perhaps no compiler."""
    if os.geteuid() != 0:
        raise BuildError("build the lab: needs root, for mmdebstrap and for the owners of files in the image")
    missing = {name for tool, names in TOOLS.items() if not shutil.which(tool) for name in names.split()}
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    if missing:
        run("refresh the package lists", "apt-get", "-q", "update")
        run("install the builder's tools", "apt-get", "-qy", "--no-install-recommends", "install", *sorted(missing),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def mirror() -> str:
    """The URI this machine's own apt takes its release from."""
    listing = run("read the apt sources", "apt-get", "indextargets", "--format",
                  "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)", "Created-By: Packages")
    release = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.M)
    for line in listing.splitlines():
        uri, suite, component, *origin = line.split()
        # The origin is unknown until the first apt-get update.
        if release and suite in (release[1], "stable") and component == "main" and origin in ([], ["Debian"]):
            return uri.rstrip("/")
    raise BuildError("read the apt sources: no Debian mirror for this release among them")


def bootstrap(suite: str, target: Path, variant: str, packages, *extra) -> None:
    """Make a tree or a tar of PACKAGES. No translations, no docs, no fsync: the result is thrown away or rebuilt."""
    proxy = run("read apt's proxy", "apt-config", "shell", "P", "Acquire::http::Proxy")
    proxied = [f'--aptopt=Acquire::http::Proxy "{uri}"' for uri in re.findall(r"P='(.+)'", proxy)]
    run(f"bootstrap {suite}", "mmdebstrap", "--quiet", "--mode=root", f"--variant={variant}",
        f"--keyring={KEYRING}",
        "--aptopt=Apt::Install-Recommends false", '--aptopt=Acquire::Languages "none"', *proxied,
        "--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
        f"--include={','.join(packages)}", *extra, suite, target, mirror())


class Archive:
    """One suite's package index in a private apt state: the machine's own lists stay as they are."""

    def __init__(self, suite: str, work: Path, architecture: str = ""):
        """Of another ARCHITECTURE (Debian's name) than this machine's, if one is named."""
        self.work = work
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (work / folder).mkdir(parents=True)
        (work / "status").touch()
        (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
        self.options = [f"-oDir::State={work}/state", f"-oDir::Cache={work}/cache",
                        f"-oDir::State::status={work}/status",
                        f"-oDir::Etc::SourceList={work}/sources.list", "-oDir::Etc::SourceParts=-",
                        "-oDir::Etc::Preferences=-", "-oDir::Etc::PreferencesParts=-",
                        "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none"]
        if architecture:
            self.options += [f"-oAPT::Architecture={architecture}", f"-oAPT::Architectures={architecture}"]
        run(f"read the index of {suite}", "apt-get", "-q", *self.options, "-oAPT::Update::Error-Mode=any", "update")

    def depends(self, package: str) -> list[str]:
        record = run(f"look up {package}", "apt-cache", *self.options, "--no-all-versions", "show", package)
        line = re.search(r"^Depends: (.*)$", record, re.M)
        return [re.split(r"[\s(|]", word.strip())[0] for word in line[1].split(",")] if line else []

    def unpack(self, package: str, tree: Path) -> None:
        """Fetch (apt checks it against the signed index) and unpack without running its scripts."""
        downloads = self.work / "debs"
        downloads.mkdir(exist_ok=True)
        run(f"download {package}", "apt-get", "-q", *self.options, "download", package, cwd=downloads)
        for deb in downloads.iterdir():
            run(f"unpack {deb.name}", "dpkg-deb", "-x", deb, tree)
            deb.unlink()
