# SPDX-License-Identifier: Apache-2.0
"""The certificates of a cluster: one authority, servers and clients of it, made on this machine by openssl."""

import subprocess
import tempfile
from pathlib import Path


class Certificates:
    def __init__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="headroom-cluster-")
        self.folder = Path(self._scratch.name)
        self._openssl("req", "-x509", *self._new_key("ca"), "-days", "30", "-subj", "/CN=lab", "-out", "ca.crt")

    def issue(self, name: str, subject: str, alternatives: str = "") -> None:
        """NAME.crt and NAME.key, for clients and, with alternatives ("DNS:a,IP:1.2.3.4"), servers; NAME.pem is both."""
        (self.folder / "extensions").write_text("extendedKeyUsage=clientAuth,serverAuth\n" +
                                                (f"subjectAltName={alternatives}\n" if alternatives else ""))
        self._openssl("req", *self._new_key(name), "-subj", subject, "-out", "request")
        self._openssl("x509", "-req", "-in", "request", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "20",
                      "-extfile", "extensions", "-out", f"{name}.crt")
        (self.folder / f"{name}.pem").write_bytes(self.read(f"{name}.crt") + self.read(f"{name}.key"))

    def key_pair(self, name: str) -> None:
        """NAME.key and NAME.pub, for what is signed without certificates."""
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self._openssl("ec", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub")

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.folder.iterdir() if file.suffix in (".crt", ".key", ".pem", ".pub")}

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def _new_key(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"]

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
