# SPDX-License-Identifier: Apache-2.0
"""In the guest: connections to its API server, as the cluster's administrator."""

import http.client
import json
import ssl
from pathlib import Path

CREDENTIALS = Path("/etc/kubernetes")
ADDRESS = "10.96.0.1"


def connect() -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=CREDENTIALS / "ca.crt")
    context.load_cert_chain(CREDENTIALS / "admin.pem")
    return http.client.HTTPSConnection(ADDRESS, context=context, timeout=60)


def ask(link: http.client.HTTPSConnection, verb: str, path: str, body=None, kind="application/json") -> dict:
    """The answer's object. Raises RuntimeError if the server refuses."""
    link.request(verb, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
    answer = link.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{verb} {path}: {answer.status} {text[:300]}")
    return json.loads(text)


def events(path: str):
    """Of a watch, for ever: the objects as they change."""
    link = connect()
    link.timeout = None
    link.request("GET", path)
    for line in link.getresponse():
        yield json.loads(line)
