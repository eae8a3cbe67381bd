# SPDX-License-Identifier: Apache-2.0
"""Where built things live: one folder per recipe, outside the tree, complete or absent."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

STALE_AFTER = 14 * 24 * 3600  # a folder that was not opened for two weeks belongs to an old recipe


def root() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(os.environ.get("HEADROOM_CACHE") or Path(home) / "headroom")
    lab = base / "lab"
    lab.mkdir(parents=True, exist_ok=True)
    return lab


def say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)


def exit_on_sigterm() -> None:
    """Let finally blocks run: a terminated program must leave no machine and no half-built folder behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@contextlib.contextmanager
def phase(name: str):
    """Print a progress line with the seconds a phase took, also when it fails."""
    began = time.monotonic()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        say(f"{name}: {outcome} in {time.monotonic() - began:.1f} s")


@contextlib.contextmanager
def locked(name: str):
    """Hold NAME alone on this machine. The kernel drops a flock with its holder, so it cannot go stale."""
    with open(root() / f".{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds {name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(*parts) -> str:
    """The recipe's name: a hash over strings and over the contents of files and folders."""
    total = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            total.update(len(piece).to_bytes(8, "big"))
            total.update(piece)
    return total.hexdigest()[:12]


def _pieces(part):
    if not isinstance(part, Path):
        yield str(part).encode()
        return
    files = sorted(part.rglob("*")) if part.is_dir() else [part]
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            yield str(file.relative_to(part.parent)).encode()
            yield file.read_bytes()


def obtain(name: str, recipe: str, build, refresh: bool = False) -> Path:
    """The folder NAME-RECIPE, built by build(folder) under a lock when it is missing.

    It is built under another name and renamed, so a folder that exists is a complete one.
    """
    target = root() / f"{name}-{recipe}"
    if target.is_dir() and not refresh:
        os.utime(target)
        return target
    with locked(name):
        if target.is_dir() and not refresh:  # another builder finished while we waited
            return target
        _forget_stale(name, keep=target)
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root()))
        try:
            with phase(f"{name}: all"):
                build(scratch)
            shutil.rmtree(target, ignore_errors=True)
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _forget_stale(name: str, keep: Path) -> None:
    """Called with the name's lock held: a scratch folder found now belonged to a builder that was killed."""
    for folder in root().glob(f".{name}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in root().glob(f"{name}-*"):
        if folder != keep and time.time() - folder.stat().st_mtime > STALE_AFTER:
            shutil.rmtree(folder, ignore_errors=True)
