# SPDX-License-Identifier: Apache-2.0
"""headroomctl top and watch in a real terminal (tmux), over recorded documents. What the screens show is kept as text in docs/terminal;
HEADROOM_SHOTS=1 writes them anew."""

import copy
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import named_tests

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/headroomctl"
SCREENS = ROOT / "docs/terminal"
RECORDED = ROOT / "tests/page/recorded/status.jsonl"
PATIENCE = 20.0  # seconds until a screen must show what is expected


def recorded_status() -> dict:
    status = json.loads(RECORDED.read_text().splitlines()[-1])
    for place, pod in enumerate(sorted(status["pods"], key=lambda each: -each["over_request"]), 1):
        pod["eviction_order"] = place if pod["state"] == "running" else None
        pod["disk"] = pod["working_set"] // 8
    return status


def crowd(count: int) -> dict:
    status = recorded_status()
    first = status["pods"][0]
    status["pods"] = [{**first, "name": f"pod-{i:04}", "namespace": ("shop", "batch")[i % 2], "uid": f"uid-{i}", "over_request": (count - i) << 20,
                       "eviction_order": i + 1} for i in range(count)]
    return status


class Daemon:
    """What headroomd answers over HTTP: the status, in which time and the pods' counters advance a second with each request, and events."""

    def __init__(self, status: dict):
        self.status, self.events, self.asked, self.down = status, [], 0, False
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path, _, query = self.path.partition("?")
                body = json.dumps(daemon.next_status() if path == "/api/status" else daemon.page(query)).encode()
                self.send_response(503 if daemon.down else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_status(self) -> dict:
        self.asked += 1
        status = copy.deepcopy(self.status)
        status["pods_at_ns"] += self.asked * 1_000_000_000
        for i, pod in enumerate(status["pods"]):
            pod["cpu_ns"] += self.asked * (250_000_000 // (i + 1))
        return status

    def page(self, query: str) -> dict:
        after = int(query.partition("=")[2] or 0)
        last = len(self.events)
        return {"instance": "test", "first": min(last, 1), "last": last, "events": [each for each in self.events if each["seq"] > after][:256]}

    def add_event(self, **fields) -> None:
        self.events.append({"seq": len(self.events) + 1, "time": "2026-11-24T20:36:15.000000Z", **fields})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, command: str, daemon: Daemon, folder: Path, columns: int = 110, rows: int = 24, **environment: str):
        self.name = f"headroom-test-{os.getpid()}-{time.monotonic_ns()}"
        variables = {"HEADROOM_HTTP": daemon.address, "XDG_CONFIG_HOME": str(folder), "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent",
                     "LC_ALL": "C.UTF-8", "TERM": "screen-256color", **environment}
        words = " ".join(f"{name}='{value}'" for name, value in variables.items())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"env {words} {PROGRAM} {command}; echo \"ended with $?\"; sleep 600")

    def tmux(self, *arguments: str) -> str:
        return subprocess.run(["tmux", "-L", self.name, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=30).stdout

    def screen(self, *options: str) -> str:
        return "\n".join(line.rstrip() for line in self.tmux("capture-pane", "-p", *options).splitlines()).rstrip() + "\n"

    def keys(self, *keys: str) -> "Terminal":
        self.tmux("send-keys", *keys)
        return self

    def text(self, text: str) -> "Terminal":
        self.tmux("send-keys", "-l", text)
        return self

    def shows(self, *texts: str, absent: tuple[str, ...] = ()) -> str:
        end = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and not any(text in screen for text in absent):
                return screen
            assert time.monotonic() < end, f"want {texts} without {absent} in:\n{screen}"
            time.sleep(0.05)

    def close(self) -> None:
        self.tmux("kill-server")


def keep(name: str, screen: str) -> None:
    """The screen is the one in the documents."""
    file = SCREENS / f"{name}.txt"
    if os.environ.get("HEADROOM_SHOTS"):
        file.write_text(screen)
    assert file.read_text() == screen, f"{file} differs from the screen; HEADROOM_SHOTS=1 tests/run terminal writes it:\n{screen}"


def in_terminal(command, status, test, **options):
    daemon = Daemon(status)
    with tempfile.TemporaryDirectory(prefix="headroom-terminal-") as folder:
        terminal = Terminal(command, daemon, Path(folder), **options)
        try:
            test(terminal, daemon, Path(folder))
        finally:
            terminal.close()
            daemon.close()


def test_the_node_and_its_pods():
    def test(terminal, _daemon, _folder):
        # The rates are known after the second status.
        keep("top", terminal.shows("default/scratch", "0.25"))
        terminal.keys("q").shows("ended with 0")
    in_terminal("top", recorded_status(), test)


def test_scrolling_filter_sort_and_detail_of_a_thousand_pods():
    def test(terminal, _daemon, _folder):
        terminal.shows("shop/pod-0000", "of 1000")
        terminal.keys("End").shows("batch/pod-0999", absent=("pod-0000",))
        terminal.keys("Home").shows("shop/pod-0000")
        terminal.text("/").text("batch 12").shows("filter: batch 12_", "batch/pod-0121", absent=("shop/",))
        terminal.keys("Enter").shows("with \"batch 12\"")
        terminal.text("/").keys("Escape").shows("of 1000  sorted")
        terminal.text("<r").shows("REQUEST ^")
        terminal.text(">r").keys("Home", "Down", "Down", "Enter")
        terminal.shows("would be evicted 3rd for memory.available", "shop/pod-0002", "Escape goes back")
        terminal.keys("Escape").shows("of 1000")
        terminal.text("h").shows("move by a screen")
        terminal.keys("Escape").text("q").shows("ended with 0")
    in_terminal("top", crowd(1000), test)


def test_one_pod():
    def test(terminal, _daemon, _folder):
        keep("top-pod", terminal.shows("would be evicted 1st", "0.04"))
    in_terminal("top --pod default/scratch", recorded_status(), test)


def test_columns_are_chosen_and_kept():
    def test(terminal, daemon, folder):
        terminal.shows("default/scratch")
        terminal.text("c").shows("[ ]  disk")
        terminal.keys(*["Down"] * 16).text(" ").shows("[x]  disk")
        keep("top-columns", terminal.screen())
        terminal.keys("Escape").text("q").shows("ended with 0")
        kept = json.loads((folder / "headroom/top.json").read_text())
        assert "disk" in kept["columns"] and kept["sort"] == "over", kept
        again = Terminal("top", daemon, folder, columns=160)
        try:
            again.shows("DISK")
        finally:
            again.close()
    in_terminal("top", recorded_status(), test)


def test_the_size_changes():
    def test(terminal, _daemon, _folder):
        terminal.shows("default/scratch")
        for columns, rows in ((40, 10), (20, 3), (200, 50)):
            terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            time.sleep(0.5)
            screen = terminal.screen()
            assert len(screen.splitlines()) <= rows and all(len(line) <= columns for line in screen.splitlines()), screen
        terminal.shows("default/scratch", "STALL")
    in_terminal("top", recorded_status(), test)


def test_colours():
    def test(terminal, _daemon, _folder):
        terminal.shows("default/scratch")
        assert "\x1b[38;5;" in terminal.screen("-e")
    in_terminal("top", recorded_status(), test)

    def plain(terminal, _daemon, _folder):
        terminal.shows("default/scratch")
        coloured = terminal.screen("-e")
        assert "\x1b[38;5;" not in coloured and "\x1b[3" not in coloured.replace("\x1b[39m", ""), coloured
        assert re.search(r"\x1b\[(?:\d+;)*7m", coloured), f"the selected pod is shown without colours too: {coloured!r}"
    in_terminal("top", recorded_status(), plain, NO_COLOR="1")
    in_terminal("top", recorded_status(), plain, TERM="vt100")


def test_the_mouse():
    def test(terminal, _daemon, _folder):
        terminal.shows("shop/pod-0000")
        line = next(i for i, text in enumerate(terminal.screen().splitlines()) if "pod-0003" in text)
        # What a terminal sends for a press of the first button.
        terminal.tmux("send-keys", "-H", *[f"{byte:02x}" for byte in f"\x1b[M {chr(33 + 2)}{chr(33 + line)}".encode("latin-1")])
        terminal.keys("Enter").shows("batch/pod-0003", "would be evicted 4th")
    in_terminal("top --mouse", crowd(50), test)


def test_a_daemon_that_stops_is_said_in_the_last_line():
    def test(terminal, daemon, _folder):
        terminal.shows("default/scratch")
        daemon.down = True
        terminal.shows("system bus", "default/scratch")
        daemon.down = False
        terminal.shows("q: quit")
    in_terminal("top", recorded_status(), test, columns=160)


def test_plain_for_a_screen_reader():
    def test(terminal, _daemon, _folder):
        keep("top-plain", terminal.shows("default/scratch: ", "sorted by over", "ended with 0"))
        assert "\x1b" not in terminal.screen("-e").replace("\x1b[39m", "").replace("\x1b[0m", "")
    in_terminal("top --plain --once", recorded_status(), test, columns=150)

    def unknown(terminal, _daemon, _folder):
        terminal.shows("terminfo does not know TERM=nothing; --plain is used", "default/scratch: ")
    in_terminal("top", recorded_status(), unknown, TERM="nothing", columns=150)


def test_hostile_names_are_text():
    status = recorded_status()
    evil = "\x1b]0;owned\x07\x1b[2J\u202e<script>" + "x" * 253
    for pod in status["pods"]:
        pod.update(name=evil, namespace=evil, qos=evil, state=evil, stalls={evil: {"ns": 1, "count": 1, "p99_ns": 1}}, ignored_fields=[evil])
    status.update(mode=evil, version=evil, conditions={evil: True})
    for threshold in status["thresholds"]:
        threshold.update(signal=evil, kind=evil)

    def test(terminal, daemon, _folder):
        title = terminal.tmux("display-message", "-p", "#{pane_title}")
        terminal.shows("?]0;owned?")
        terminal.keys("Enter").shows("ranking")
        assert terminal.tmux("display-message", "-p", "#{pane_title}") == title
        assert "\u202e" not in terminal.screen()
        terminal.text("q").shows("ended with 0")
    in_terminal("top", status, test)

    def watch(terminal, daemon, _folder):
        time.sleep(1)
        daemon.add_event(type="oom_kill", message=evil)
        daemon.add_event(type="eviction", phase="ended", outcome=evil, signal=evil, whole_pod=True, pod={"namespace": evil, "name": evil})
        screen = terminal.shows("oom_kill   ?]0;owned?", "eviction   ?]0;owned?")
        assert "\u202e" not in screen
    in_terminal("watch", status, watch, columns=200)


def test_events_as_they_come():
    pod = {"namespace": "default", "name": "scratch", "uid": "fb685752", "qos": "BestEffort", "priority": 0}

    def test(terminal, daemon, _folder):
        daemon.add_event(type="drift", slice="/before", setting="memory.max")
        time.sleep(1.5)
        daemon.add_event(type="condition", condition="MemoryPressure", status=True)
        daemon.add_event(type="eviction", phase="began", pod=pod, signal="memory.available", whole_pod=True, message="")
        daemon.add_event(type="eviction", phase="ended", pod=pod, signal="memory.available", whole_pod=True, message="", outcome="evicted",
                         memory_returned=1292509184, error=None)
        daemon.add_event(type="oom_kill", pod=None, cgroup="/system.slice/x.service", pid=7, comm="x", limit_of="/system.slice/x.service",
                         message="the kernel killed process 7 (x) of /system.slice/x.service: memory.max of /system.slice/x.service was hit")
        keep("watch", terminal.shows("evicting", "evicted", "the kernel killed"))
        daemon.down = True
        terminal.shows("system bus")
        daemon.down = False
        daemon.add_event(type="condition", condition="MemoryPressure", status=False)
        terminal.shows("no longer reported")
        terminal.keys("C-c").shows("ended with 0")
    in_terminal("watch -n 1", recorded_status(), test, columns=130)


def run_watch(daemon: Daemon, *arguments: str, seconds: float) -> subprocess.CompletedProcess:
    environment = {**os.environ, "HEADROOM_HTTP": daemon.address, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"}
    return subprocess.run(["timeout", "--signal=TERM", "--preserve-status", str(seconds), PROGRAM, "watch", *arguments], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)


def test_json_for_pipes():
    daemon = Daemon(recorded_status())
    for condition in ("MemoryPressure", "DiskPressure"):
        daemon.add_event(type="condition", condition=condition, status=True)
    daemon.add_event(type="drift", slice="/kubepods.slice", setting="memory.max")
    done = run_watch(daemon, "--json", "-n", "10", "--type", "condition", seconds=2)
    daemon.close()
    assert done.returncode == 0, done
    assert [json.loads(line)["condition"] for line in done.stdout.splitlines()] == ["MemoryPressure", "DiskPressure"], done


def test_a_command_for_each_event_is_repeated_until_it_succeeds():
    daemon = Daemon(recorded_status())
    for condition in ("MemoryPressure", "DiskPressure"):
        daemon.add_event(type="condition", condition=condition, status=True)
    with tempfile.TemporaryDirectory(prefix="headroom-terminal-") as folder:
        got, state = Path(folder, "got"), Path(folder, "state")
        # The first attempt fails.
        command = f"cat >> {got}; test $(wc -l < {got}) -ge 2"
        done = run_watch(daemon, "-n", "10", "--command", command, "--state", str(state), seconds=5)
        assert done.returncode == 0 and not done.stderr, done
        lines = [json.loads(line)["condition"] for line in got.read_text().splitlines()]
        assert lines == ["MemoryPressure", "MemoryPressure", "DiskPressure"], lines
        assert state.read_text() == "test 2\n", state.read_text()
        # A later run continues: only what is new.
        daemon.add_event(type="condition", condition="PIDPressure", status=True)
        run_watch(daemon, "--command", f"cat > {got}", "--state", str(state), seconds=3)
        assert json.loads(got.read_text())["condition"] == "PIDPressure"
        failed = run_watch(daemon, "-n", "1", "--command", "exit 9", "--attempts", "2", seconds=5)
        assert "failed 2 times for event 3: exit status 9; the event is dropped" in failed.stderr, failed
    daemon.close()


def run() -> list[tuple[str, str, str]]:
    """[(name, status, reason)]"""
    if not PROGRAM.exists():
        return [("(headroomctl)", "failed", f"no {PROGRAM}: make all")]
    if not shutil.which("tmux"):
        return [("(the terminal)", "skipped", "no tmux: apt-get install tmux")]
    return named_tests.run_all(globals())
