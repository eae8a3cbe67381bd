# SPDX-License-Identifier: Apache-2.0
"""The guest's endpoint under a port of this machine: the guest has no network, so requests are passed on through the agent."""

import contextlib
import http.server
import shlex
import threading

from node import PORT

PASSED_ON = ("Accept", "If-None-Match")
OURS = ("content-length", "transfer-encoding", "connection", "date")  # of the answer: ours to say


@contextlib.contextmanager
def forwarded(vm):
    """Yields HOST:PORT."""

    class Passing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            headers = [f"{name}: {value}" for name in PASSED_ON if (value := self.headers.get(name))]
            words = ["curl", "-sS", "-i", "--max-time", "5", f"http://127.0.0.1:{PORT}{self.path}"]
            for header in headers:
                words += ["-H", header]
            answer = vm.run(shlex.join(words))
            head, _, body = answer.data.partition(b"\r\n\r\n")
            first, *lines = head.decode(errors="replace").split("\r\n")
            status = first.split(" ", 2)[1:2]
            self.send_response(int(status[0]) if status and answer.code == 0 else 502)
            for line in lines if answer.code == 0 else ():
                name, _, value = line.partition(":")
                if name.lower() not in OURS:
                    self.send_header(name, value.strip())
            self.send_header("Content-Length", str(len(body)))
            with contextlib.suppress(ConnectionError):  # Prometheus had no patience with a busy machine
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
