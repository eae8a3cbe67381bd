# SPDX-License-Identifier: Apache-2.0
"""A scrape of headroom-kube's metrics over HTTPS, and headroomd's page behind them."""

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request


class Page(http.server.BaseHTTPRequestHandler):
    """headroomd's metrics, what headroom-kube reads for the scheduler, and nothing else."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/api/scheduling":
            return self.send_scheduling()
        self.send_response(200)
        self.send_header("Connection", "close")
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(f"of {self.path}\n".encode())

    def send_scheduling(self):
        body = json.dumps({"at_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME)} | self.server.readings).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def headroomd(readings=None):
    """The address of a stand-in. readings: of /api/scheduling, which the caller may change."""
    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    page.daemon_threads, page.readings = True, readings if readings is not None else {}
    threading.Thread(target=page.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{page.server_address[1]}"
    finally:
        page.shutdown()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def scrape(port: int, path: str, token: str) -> tuple[int, str]:
    """Without a look at the certificate, which is self-signed."""
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20, context=ssl._create_unverified_context()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
