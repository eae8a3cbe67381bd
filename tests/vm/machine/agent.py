# SPDX-License-Identifier: Apache-2.0
"""The host's end of the agent's wire (see guest/agent.c): many commands at once over one socket."""

import itertools
import queue
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

MAX_SCRIPT = 120 << 10  # sh -c takes it as one argument


class InfrastructureError(Exception):
    """The lab failed, not what it tests: a kernel panic, a boot that hangs, an agent that is gone."""


@dataclass(frozen=True)
class Reply:
    how: str  # exit, signal, timeout or flood
    number: int  # the exit code or the signal
    data: bytes


class Agent:
    """Connected as soon as qemu listens: what the guest says before is lost."""

    def __init__(self, path: Path, deadline: float):
        self.socket = _connect(path, deadline)
        self.ready = threading.Event()
        self.gone = threading.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, queue.SimpleQueue] = {}
        self._sending = threading.Lock()
        threading.Thread(target=self._listen, daemon=True, name="agent").start()

    def start(self, script: str, timeout: float, data: bytes = b"") -> queue.SimpleQueue:
        """Send a command; the queue gets its Reply, or None when the guest is gone."""
        text = script.encode()
        if len(text) > MAX_SCRIPT:
            raise ValueError(f"script of {len(text)} bytes: put() it as a file and run that")
        number = str(next(self._numbers))
        answer = self._waiting[number] = queue.SimpleQueue()
        head = f"RUN {number} {int(timeout * 1000)} {len(text)} {len(data)}\n".encode()
        try:
            with self._sending:
                self.socket.sendall(head + text + data)
        except OSError:
            self.gone.set()
        if self.gone.is_set():
            answer.put(None)
        return answer

    def close(self) -> None:
        self.gone.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def _listen(self) -> None:
        try:
            with self.socket.makefile("rb") as stream:
                for line in stream:
                    self._take(line.split(), stream)
        except (OSError, ValueError):
            pass
        self.gone.set()
        self.ready.set()
        for answer in list(self._waiting.values()):
            answer.put(None)

    def _take(self, words: list[bytes], stream) -> None:
        if words == [b"READY"]:
            self.ready.set()
        if len(words) == 5 and words[0] == b"RES":
            data = stream.read(int(words[4]))
            answer = self._waiting.pop(words[1].decode(), None)
            if answer:
                answer.put(Reply(words[2].decode(), int(words[3]), data))


def _connect(path: Path, deadline: float) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    while True:
        try:
            link.connect(str(path))
            return link
        except OSError as error:
            if time.monotonic() > deadline:
                link.close()
                raise InfrastructureError(f"connect to the emulator's agent port: {error}") from None
            time.sleep(0.02)
