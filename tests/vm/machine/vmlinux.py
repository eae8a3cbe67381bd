# SPDX-License-Identifier: Apache-2.0
"""The ELF kernel inside a bzImage: booted directly it saves the emulated decompression (0.4 s)."""

import struct
import subprocess
from pathlib import Path

UNPACKERS = {
    b"\xfd7zXZ\x00": ["xz", "-dc", "--single-stream"],
    b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"],
    b"\x02\x21\x4c\x18": ["lz4", "-dcq"],
}


def extract(bzimage: Path, elf: Path) -> bool:
    """Write the ELF and say True; False when this kernel is packed in a way we do not know."""
    payload = _payload(bzimage.read_bytes())
    for magic, command in UNPACKERS.items():
        if payload.startswith(magic):
            # Some unpackers complain about what follows the stream; the ELF magic and the entry note decide.
            unpacked = subprocess.run(command, input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            # qemu enters an ELF through its PVH note (type 18, owner "Xen").
            if unpacked.startswith(b"\x7fELF") and b"Xen\x00" in unpacked:
                elf.write_bytes(unpacked)
                return True
    return False


def _payload(image: bytes) -> bytes:
    """Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset and payload_length at 0x248."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    return image[start:start + length - 4]  # the last four bytes are the unpacked size, appended by the build
