# SPDX-License-Identifier: Apache-2.0
"""The build itself: batches, the builder's flags, hardening, and what goes wrong for a user: one clear line, nothing half done."""

import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("headroomd", "headroomctl", "headroom-kube", "headroom-commands")


class Skip(Exception):
    """Says why a test cannot run here."""


def command(*words, **environment) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TOTAL")}
    return subprocess.run([str(word) for word in words], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**clean, **environment}, timeout=600)


def lines_of_ours(output: str) -> list[str]:
    return [line for line in output.splitlines() if "headroom: " in line]


@contextlib.contextmanager
def small_disk(folder: Path, size: str):
    """A tmpfs of that size."""
    if os.geteuid():
        raise Skip("only root may mount a small disk")
    folder.mkdir(parents=True)
    done = command("mount", "-t", "tmpfs", "-o", f"size={size}", "headroom-test", folder)
    if done.returncode:
        raise Skip(f"mounting is not permitted here: {done.stdout.strip()}")
    try:
        yield folder
    finally:
        command("umount", "-l", folder)


def batches(folder: Path, files: dict[str, str]) -> list[set[str]]:
    module = SourceFileLoader("batch_sources", str(ROOT / "tools/batch-sources")).load_module()
    sources = []
    for name, text in files.items():
        (folder / name).write_text(text)
        sources.append(module.Source(str(folder / name)))
    return [{Path(source.path).name for source in batch} for batch in module.batches_of(sources, 16, 2500)]


def test_a_lab_test_that_needs_a_second_run_is_listed_with_its_history(folder: Path) -> None:
    flaky = SourceFileLoader("flaky", str(ROOT / "tests/flaky.py")).load_module()
    history = folder / "cache" / "lab-history.jsonl"
    steady, unsteady = ("vm", "6.12 test_a.steady", "passed", ""), ("vm", "6.12 test_b.unsteady", "passed", "AssertionError: 1.9 s\nat line 3")
    assert flaky.summary(flaky.add(history, [steady, unsteady[:3] + ("",)])) == []
    history.write_text(history.read_text() + '{"ran": [')  # interrupted
    runs = flaky.add(history, [steady, unsteady, ("vm", "6.12 test_c.skipped", "skipped", "no zram")])
    assert flaky.summary(runs) == ["  FLAKY   vm 6.12 test_b.unsteady: passed only when it was run again, in 1 of its last 2 runs here\n"
                                   "      AssertionError: 1.9 s"], flaky.summary(runs)
    for _ in range(60):
        runs = flaky.add(history, [steady])
    assert len(runs) == flaky.KEPT_RUNS == len(flaky.read(history)) and flaky.summary(runs) == []


def test_files_that_share_no_name_are_one_batch(folder: Path) -> None:
    assert batches(folder, {"a.cc": "namespace {\nint first() { return 1; }\n}\nint a() { return first(); }\n",
                            "b.cc": "namespace {\nint second() { return 2; }\n}\nint b() { return second(); }\n"}) \
        == [{"a.cc", "b.cc"}]


def test_a_name_that_two_files_define_separates_them(folder: Path) -> None:
    for own in ("int same() { return 1; }", "constexpr int same = 1;", "struct same { int x; };", "using same = int;",
                "template <class T> T same(T t) { return t; }", "enum class same { kOne };", "int same[2] = {1, 2};",
                "const std::map<int, std::vector<int>> same{{1, {2}}};"):
        other = "namespace {\nint same() { return 2; }\n}\n"
        assert len(batches(folder, {"a.cc": "namespace {\n" + own + "\n}\n", "b.cc": other})) == 2, own


def test_a_name_that_would_mean_something_else_separates_them(folder: Path) -> None:
    hides = "namespace {\nconstexpr int seconds = 1;\n}\n"
    assert len(batches(folder, {"a.cc": hides, "b.cc": "#include <chrono>\nauto b() { return seconds(1); }\n"})) == 2
    assert len(batches(folder, {"a.cc": hides, "b.cc": "int b(X x) { return x.seconds + std::seconds; }\n"})) == 1
    assert len(batches(folder, {"a.cc": hides, "b.cc": "// seconds\nconst char* b = \"seconds\";\n"})) == 1


def test_an_alias_of_the_same_text_may_be_shared(folder: Path) -> None:
    text = "namespace {\nusing Json = nlohmann::json;\n}\nJson %s();\n"
    assert len(batches(folder, {"a.cc": text % "a", "b.cc": text % "b"})) == 1
    assert len(batches(folder, {"a.cc": text % "a", "b.cc": (text % "b").replace("::json", "::ordered_json")})) == 2
    text = "namespace {\nnamespace fs = std::filesystem;\n}\nfs::path %s();\n"
    assert len(batches(folder, {"a.cc": text % "a", "b.cc": text % "b"})) == 1
    assert len(batches(folder, {"a.cc": text % "a", "b.cc": (text % "b").replace("filesystem", "experimental")})) == 2


def test_folders_share_batches_where_they_are_said_to(folder: Path) -> None:
    for name in ("one", "two", "three"):
        (folder / "userspace" / name).mkdir(parents=True)
        (folder / "userspace" / name / f"{name}.cc").write_text(f"int {name}() {{ return 1; }}\n")
    for group, made in (("both=one,two", "b/both-0.cc b/three-0.cc"), ("every", "b/every-0.cc")):
        done = subprocess.run([ROOT / "tools/batch-sources", "--out", "b", "--files", "9", "--lines", "99", "--group", group,
                               *(f"userspace/{name}/{name}.cc" for name in ("one", "two", "three"))], cwd=folder, check=False)
        assert done.returncode == 0
        assert (folder / "b/batches.mk").read_text() == f"BATCHES := {made}\n"
        assert {str(batch.relative_to(folder)) for batch in (folder / "b").glob("*.cc")} == set(made.split())
        first = (folder / made.split()[0]).read_text()
        assert "one.cc" in first and "two.cc" in first


def test_a_file_with_macros_is_alone(folder: Path) -> None:
    assert len(batches(folder, {"a.cc": "#define A 1\nint a();\n", "b.cc": "int b();\n"})) == 2


def test_every_file_is_in_one_batch(_folder: Path) -> None:
    files = [line for batch in (ROOT / "build/batch").glob("*.cc")
             for line in re.findall(r'^#include "(userspace/.*\.cc)"', batch.read_text(), re.M)]
    every = {str(path.relative_to(ROOT)) for path in (ROOT / "userspace").rglob("*.cc") if path.name != "main.cc"}
    assert len(files) == len(set(files)) and set(files) == every, set(files) ^ every


def test_the_builders_flags_are_honoured(folder: Path) -> None:
    printed = command("make", "-n", f"B={folder}/b", "all", "V=1", "CXX=c++", "CPPFLAGS=-DTHEIRS", "CXXFLAGS=-O3 -g3",
                      "LDFLAGS=-Wl,--theirs").stdout
    compiles = [line for line in printed.splitlines() if " -c userspace/" in line or f" -c {folder}/b/batch" in line]
    links = [line for line in printed.splitlines() if re.search(r"-o \S+/headroom(d|ctl|-kube) ", line)]
    assert len(compiles) > 40 and len(links) == 3, printed[-2000:]
    for line in compiles:
        assert " c++ " in line and " -DTHEIRS -O3 -g3 " in line and "-O2" not in line and "-Werror" not in line, line
    assert all(" c++ " in line and " -Wl,--theirs " in line for line in links), links


def test_they_come_from_the_environment_too(folder: Path) -> None:
    printed = command("make", "-n", f"B={folder}/b", "all", CXX="c++", CXXFLAGS="-Og", LDFLAGS="-Wl,--theirs").stdout
    assert " c++ " in printed and " -Og " in printed and "-Wl,--theirs" in printed, printed[-2000:]


def test_warnings_are_errors_only_on_request(folder: Path) -> None:
    for words, count in (((), 0), (("WERROR=1",), 1)):
        printed = command("make", "-n", f"B={folder}/b", "all", *words).stdout
        assert bool(printed.count(" -Werror ")) == bool(count), words


def test_the_programs_are_hardened(_folder: Path) -> None:
    for program in PROGRAMS:
        dynamic = command("readelf", "-dW", ROOT / "build" / program).stdout
        headers = command("readelf", "-hlW", ROOT / "build" / program).stdout
        symbols = command("readelf", "-sW", "--dyn-syms", ROOT / "build" / program).stdout
        assert "BIND_NOW" in dynamic and " PIE" in dynamic and "GNU_RELRO" in headers and "DYN" in headers, program
        assert "__stack_chk_fail" in symbols, program
        # headroom-commands is small: the compiler knows the size of every buffer in it.
        assert program == "headroom-commands" or re.search(r"__\w+_chk@", symbols), program
        assert not re.search(r"GNU_STACK.*RWE", headers), program


def test_no_path_of_the_builder_is_in_them(_folder: Path) -> None:
    for program in PROGRAMS:
        assert str(ROOT).encode() not in (ROOT / "build" / program).read_bytes(), program


def test_the_daemon_links_no_network_library(_folder: Path) -> None:
    needed = command("readelf", "-dW", ROOT / "build/headroomd").stdout
    assert "libcurl" not in needed and "libspdlog" not in needed and "libyaml-cpp" not in needed, needed


def test_without_a_compiler_one_line_says_so(folder: Path) -> None:
    for words, name in ((["CXX=missing-g++"], "missing-g++"), (["CLANG=missing-clang"], "missing-clang")):
        done = command("make", f"B={folder}/b", "all", *words)
        assert done.returncode != 0, done.stdout
        assert len(lines_of_ours(done.stdout)) == 1 and f"{name} is not found" in done.stdout, done.stdout
        assert not list(folder.rglob("*.o")), "nothing is built before"


def test_without_a_network_one_line_says_so_and_nothing_is_installed(folder: Path) -> None:
    tools = folder / "tools"
    tools.mkdir()
    for name, text in (("dpkg-query", "exit 1"), ("apt-get", "echo 'W: noise' >&2; echo 'E: Failed to fetch http://mirror/g++.deb' >&2; exit 100")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    done = command("make", "deps", PATH=f"{tools}:{os.environ['PATH']}")
    said = [line for line in lines_of_ours(done.stdout) if "installing" not in line]
    assert done.returncode != 0 and len(said) == 1 and "E: Failed to fetch" in said[0] and "W: noise" not in done.stdout, done.stdout


def test_without_apt_one_line_names_the_packages(folder: Path) -> None:
    done = command("tools/install-deps", PATH=str(folder))
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and "needs apt" in done.stdout and "libbpf-dev" in done.stdout, done.stdout


def test_on_fedora_the_line_is_a_command_of_dnf(folder: Path) -> None:
    for name in ("bash", "sed", "dirname", "env"):
        (folder / name).symlink_to(shutil.which(name))
    (folder / "dnf").write_text("#!/bin/sh\n")
    (folder / "dnf").chmod(0o755)
    done = command("tools/install-deps", PATH=str(folder))
    assert done.returncode == 1 and done.stdout.count("\n") == 1, done.stdout
    assert "dnf install 'bpftool'" in done.stdout and "'pkgconfig(libbpf)'" in done.stdout, done.stdout


def test_libraries_of_another_architecture_without_a_network(folder: Path) -> None:
    if os.geteuid() or command("unshare", "--net", "true").returncode:
        raise Skip("a network namespace cannot be made here")
    done = command("unshare", "--net", "make", "sysroot", "ARCH=arm64", f"SYSROOT={folder}/sysroot")
    assert done.returncode != 0 and len(lines_of_ours(done.stdout)) == 1 and "cannot be fetched" in done.stdout, done.stdout
    assert "E: " not in done.stdout and not list(folder.iterdir()), done.stdout


def test_packages_of_another_release_without_a_network(folder: Path) -> None:
    if os.geteuid() or command("unshare", "--net", "true").returncode:
        raise Skip("a network namespace cannot be made here")
    done = command("unshare", "--net", "make", "deb", "SUITE=trixie", HEADROOM_CACHE=str(folder))
    said = [line for line in lines_of_ours(done.stdout) if "making a root directory" not in line]
    assert done.returncode != 0 and len(said) == 1 and "the root directory of trixie cannot be made" in said[0], done.stdout
    assert not list((folder / "roots").iterdir()), "nothing half made stays"


def test_the_lab_without_a_network_is_one_line(folder: Path) -> None:
    if os.geteuid() or command("unshare", "--net", "true").returncode:
        raise Skip("a network namespace cannot be made here")
    done = command("unshare", "--net", "make", "lab-image", HEADROOM_CACHE=str(folder / "cache"))
    assert done.returncode != 0 and len(lines_of_ours(done.stdout)) == 1, done.stdout
    assert "the lab cannot be built" in done.stdout, done.stdout
    assert not [each for each in (folder / "cache/lab").iterdir() if each.is_dir()], "nothing half made stays"


def test_big_endian_and_unknown_machines_are_refused_in_one_line(folder: Path) -> None:
    compiler = folder / "g++-big-endian"
    compiler.write_text("#!/bin/sh\necho '#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__'\n")
    compiler.chmod(0o755)
    for word, reason in ((f"CXX={compiler}", "big-endian"), ("ARCH=riscv64", "ARCH=riscv64 is not supported")):
        done = command("make", f"B={folder}/b", "all", word)
        assert done.returncode != 0 and len(lines_of_ours(done.stdout)) == 1 and reason in done.stdout, done.stdout
        assert not list(folder.rglob("*.o")), "nothing is built before"


def test_another_architecture_is_built_with_its_tools(folder: Path) -> None:
    compiler = folder / "aarch64-linux-gnu-g++"  # nothing is compiled: it need not be installed
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    words = ("V=1", "ARCH=arm64", f"SYSROOT={folder}", "PKG_CONFIG=true")
    path = f"{folder}:{os.environ['PATH']}"
    printed = command("make", "-n", f"B={folder}/b", "all", f"{folder}/b/test/vectors", *words, PATH=path).stdout.replace("\\\n", " ")
    compiles = [line for line in printed.splitlines() if " -c userspace/" in line or f" -c {folder}/b/batch" in line]
    assert len(compiles) > 40, printed[-2000:]
    for line in compiles:
        assert ("aarch64-linux-gnu-g++" in line or "--target=aarch64-linux-gnu" in line) and f"--sysroot={folder}" in line, line
        assert "-fcf-protection" not in line and "-fsanitize" not in line, line
    programs = [line for line in printed.splitlines() if " -target bpf " in line]
    assert programs and all("-D__TARGET_ARCH_arm64" in line for line in programs), programs
    done = command("make", "-n", "build/arm64/test/vectors", *words, PATH=path)
    assert done.returncode == 0, "it is built beside this machine's own programs"


def test_a_full_disk_in_mid_build_is_one_line_and_leaves_nothing_half_written(folder: Path) -> None:
    with small_disk(folder / "disk", "1200k") as disk:
        done = command("make", f"B={disk}/b", "all")
        assert done.returncode != 0 and "no space left" in done.stdout, done.stdout
        assert len(lines_of_ours(done.stdout)) == 1, done.stdout
        failed = re.search(r"no space left for (\S+),", done.stdout)[1]
        assert not Path(failed).exists(), failed


def test_a_full_disk_installs_nothing(folder: Path) -> None:
    with small_disk(folder / "disk", "4m") as disk:
        stage = folder / "stage"
        for name, size in (("etc/headroom/headroom.yaml", 100), ("usr/sbin/large", 8 << 20), ("usr/bin/small", 10)):
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).write_bytes(b"x" * size)
        done = command("tools/install-tree", stage, disk)
        assert done.returncode == 1 and len(lines_of_ours(done.stdout)) == 1, done.stdout
        assert "nothing is installed" in done.stdout and "No space left" in done.stdout, done.stdout
        assert not list(disk.iterdir()), list(disk.rglob("*"))


def test_installing_keeps_the_configuration_and_replaces_the_rest(folder: Path) -> None:
    stage, root = folder / "stage", folder / "root"
    for place in (stage, root):
        (place / "etc/headroom").mkdir(parents=True)
        (place / "etc/headroom/headroom.yaml").write_text(place.name)
        (place / "program").write_text(place.name)
    done = command("tools/install-tree", stage, root)
    assert done.returncode == 0, done.stdout
    assert (root / "etc/headroom/headroom.yaml").read_text() == "root" and (root / "program").read_text() == "stage"
    assert not list(root.rglob("*.headroom-new"))


def test_the_tests_before_have_left_the_programs_up_to_date(_folder: Path) -> None:
    """Else the next make would link them anew, under tests that run them."""
    programs = [ROOT / "build" / name for name in PROGRAMS]
    before = [program.stat().st_mtime_ns for program in programs]
    done = command("make", "all")
    assert done.returncode == 0 and before == [program.stat().st_mtime_ns for program in programs], done.stdout


def test_units_are_where_systemd_looks_and_start_what_is_installed(folder: Path) -> None:
    says = command("pkg-config", "--variable=systemdsystemunitdir", "systemd").stdout.strip() or "/usr/lib/systemd/system"
    for words, units, program in (((), says, "/usr/sbin"), (("PREFIX=/opt/h",), "/opt/h/lib/systemd/system", "/opt/h/sbin"),
                                  (("UNITDIR=/units",), "/units", "/usr/sbin")):
        stage = folder / "stage"
        done = command("make", "stage", f"STAGE={stage}", *words)
        assert done.returncode == 0, done.stdout
        for name in ("headroomd", "headroom-kube"):
            start, = re.findall(r"^ExecStart=(\S+)", Path(f"{stage}{units}/{name}.service").read_text(), re.M)
            assert start == f"{program}/{name}" and Path(f"{stage}{start}").exists(), start


def test_no_unit_exposes_more_than_its_job_takes(_folder: Path) -> None:
    """By the file alone; what is left, and why, is in docs/security.md. A setting that goes unnoticed costs points here."""
    if not shutil.which("systemd-analyze"):
        raise Skip("there is no systemd-analyze")
    most = {"headroomd": 3.0, "headroom-commands@": 3.0, "headroom-events": 1.6, "headroom-kube": 1.7}
    units = {path.name.removesuffix(".service") for path in (ROOT / "systemd").glob("*.service")}
    assert units == set(most), units
    for unit, limit in most.items():
        done = command("systemd-analyze", "security", "--no-pager", "--offline=true", f"systemd/{unit}.service")
        if "unrecognized option" in done.stdout:
            raise Skip("systemd-analyze is older than 250")
        exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)[1])
        assert exposure <= limit, (unit, exposure, done.stdout)


def test_headroom_commands_serves_its_standard_input(_folder: Path) -> None:
    program = ROOT / "build/headroom-commands"
    started = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert started.returncode == 2 and "headroom-commands.socket" in started.stderr, started
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(10)
        # As userspace/act/exec/command_message.cc: version, flags, time and memory limit, strings; the user, then the words.
        ours.send(struct.pack("=IIQQII", 0x48434d01, 0, 5 * 10**9, 0, 4, 0) + b"\0/bin/sh\0-c\0cat; exit 3\0")
        done = subprocess.run([program], stdin=theirs, capture_output=True, text=True, timeout=20, check=False)
        if os.geteuid():
            assert done.returncode == 1 and "uid" in done.stderr, "only root may ask"
            return
        assert done.returncode == 0, done
        _version, refused, result = struct.unpack("=Iii", ours.recv(512)[:12])
        assert (refused, result) == (0, 1 << 16 | 3), (refused, result)


def test_the_program_for_commands_links_little(_folder: Path) -> None:
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", command("readelf", "-dW", ROOT / "build/headroom-commands").stdout))
    assert needed <= {"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6"}, needed


def test_make_run_refuses_an_unknown_kernel_before_it_builds(folder: Path) -> None:
    done = command("make", "run", f"B={folder}/b", KERNEL="4.19", HEADROOM_LAB="1")
    assert done.returncode != 0 and len(lines_of_ours(done.stdout)) == 1, done.stdout
    assert "no kernel 4.19" in done.stdout and not (folder / "b/bpf").exists(), done.stdout


def test_make_run_knows_whether_the_lab_is_made(folder: Path) -> None:
    def said() -> str:
        return command("play/run", "--seconds", HEADROOM_LAB="1", HEADROOM_CACHE=str(folder)).stdout
    assert said() == "180 make-the-lab-and-play\n"
    (folder / "lab/6.12-0123456789ab").mkdir(parents=True)
    assert said() == "60 play-in-the-lab\n"
    # Another architecture's is another lab, wherever it is asked for.
    assert command("play/run", "--seconds", ARCH="arm64", HEADROOM_CACHE=str(folder)).stdout == "300 make-the-lab-and-play\n"
    assert command("play/run", "--targets", ARCH="arm64").stdout == "build/arm64/play/payload/.made lab-image\n"


def test_progress_is_numbered(folder: Path) -> None:
    done = command("tools/build-with-progress", "--then", "60", "do-it", f"B={folder}/b", f"{folder}/b/page/page.inc")
    assert done.returncode == 0, done.stdout
    assert re.search(r"headroom: 1 steps? to build, about \d+ s on \d+ CPUs?; then do it, about 60 s", done.stdout), done.stdout
    assert "[1/1] PAGE" in done.stdout, done.stdout


def test_make_alone_builds_the_programs(_folder: Path) -> None:
    database = command("make", "--no-print-directory", "--print-data-base", "--question", "help").stdout
    assert ".DEFAULT_GOAL := programs\n" in database, [line for line in database.splitlines() if "DEFAULT_GOAL" in line]
    done = command("make", "--no-print-directory", "--dry-run")
    assert done.returncode == 0 and "tools/build-with-progress all" in done.stdout, done.stdout


def run() -> list[tuple[str, str, str]]:
    rows = []
    (ROOT / "build/test").mkdir(parents=True, exist_ok=True)
    for name, test in {name: test for name, test in globals().items() if name.startswith("test_")}.items():
        own = Path(tempfile.mkdtemp(prefix="build-", dir=ROOT / "build/test"))
        try:
            test(own)
            rows.append((name, "passed", ""))
        except Skip as reason:
            rows.append((name, "skipped", str(reason)))
        except Exception as error:  # a failed assertion, or a tool that is missing
            rows.append((name, "failed", f"{type(error).__name__}: {error}"))
        finally:
            shutil.rmtree(own, ignore_errors=True)
        print(f"{rows[-1][1]:6} {name}", file=sys.stderr)
    return rows
