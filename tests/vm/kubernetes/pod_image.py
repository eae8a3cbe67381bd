# SPDX-License-Identifier: Apache-2.0
"""Containers' images in the form of `docker save`: a layer, what it is, how it is called."""

import hashlib
import io
import json
import tarfile
from pathlib import Path


def write(program: Path, file: Path, names: list[str]) -> None:
    """Of one static program."""
    _save(file, names, {program.name: program}, [f"/{program.name}"])


def _save(file: Path, names: list[str], files: dict[str, Path], entrypoint: list[str]) -> None:
    layer = _tar({name: (source.read_bytes(), 0o755) for name, source in files.items()})
    about = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": entrypoint},
                        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
    about_name = hashlib.sha256(about).hexdigest() + ".json"
    manifest = json.dumps([{"Config": about_name, "RepoTags": names, "Layers": ["layer.tar"]}]).encode()
    file.write_bytes(_tar({"layer.tar": (layer, 0o644), about_name: (about, 0o644), "manifest.json": (manifest, 0o644)}))


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (data, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
    return whole.getvalue()
