#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet's authenticated port as far as headroom-kube knows it: TLS, a bearer token, /pods and /configz.

    kubelet_double.py DIRECTORY PORT

What it does is in DIRECTORY, read anew for each request, so that a test changes it by writing files:
    pods.json, configz.json   what it answers
    server.pem                its certificate and key; for each connection: a new one is a rotation
    token                     the token it wants
    mode                      ok, 401, 403, 500, slow, reset, half, garbage
It appends "STATUS METHOD PATH" to DIRECTORY/requests.
"""

import http.server
import socket
import ssl
import struct
import sys
import time
from pathlib import Path

directory, port = Path(sys.argv[1]), int(sys.argv[2])
SLOW = 20  # seconds: longer than any client waits


def setting(name: str, default: str = "") -> str:
    try:
        return (directory / name).read_text().strip()
    except FileNotFoundError:
        return default


class Kubelet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "server.pem")
        self.request.settimeout(10)
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self):
        mode = setting("mode", "ok")
        if self.headers.get("Authorization") != f"Bearer {setting('token')}":
            return self.answer(401, b"Unauthorized")
        if mode.isdigit():
            return self.answer(int(mode), b"no")
        body = {"/pods": "pods.json", "/configz": "configz.json"}.get(self.path)
        if body is None:
            return self.answer(404, b"404 page not found\n")
        data = (directory / body).read_bytes()
        if mode == "slow":
            time.sleep(SLOW)
        if mode == "garbage":
            data = b"<html>" + data
        self.answer(200, data, len(data) // 2 if mode in ("half", "reset") else len(data), mode)

    def answer(self, status, data, sent=None, mode="ok"):
        with open(directory / "requests", "a") as log:
            log.write(f"{status} {self.command} {self.path}\n")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:sent])
        if sent is not None and sent < len(data) or mode == "reset":
            self.close_connection = True
            if mode == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that does not believe us hangs up


Server(("127.0.0.1", port), Kubelet).serve_forever()
