# SPDX-License-Identifier: Apache-2.0
"""The lab itself: that the machine is the one the other tests believe in, and that its hand is reliable."""

import os
import tempfile
from pathlib import Path

from lab import CommandFailed, bundle

KERNELS = ("6.12",)
PATIENT = True
SWAP = "256M"
DISK = "64M"


def test_system_is_running_under_systemd(vm):
    assert vm.run("cat /proc/1/comm").out == "systemd\n"
    assert vm.run("systemctl is-system-running --wait").out == "running\n"


def test_kernel_is_the_one_asked_for(vm):
    release = vm.run("uname -r").out.strip()
    assert release == vm.image.kernel_version
    assert vm.kernel == "newest" or release.startswith(vm.kernel + ".")


def test_cgroup_v2_has_the_controllers(vm):
    assert vm.run("stat -fc %T /sys/fs/cgroup").out == "cgroup2fs\n"
    controllers = set(vm.run("cat /sys/fs/cgroup/cgroup.controllers").out.split())
    assert {"cpu", "memory", "cpuset", "pids", "io"} <= controllers, controllers
    assert vm.run("grep -c cgroup /proc/mounts").out == "1\n"


def test_pressure_is_measured(vm):
    for resource in ("cpu", "memory", "io"):
        assert vm.run(f"cat /proc/pressure/{resource}", check=True).out.startswith("some avg10=")
    assert vm.run("cat /sys/fs/cgroup/system.slice/memory.pressure", check=True).out.startswith("some avg10=")


def test_kernel_types_are_readable(vm):
    assert int(vm.run("stat -c %s /sys/kernel/btf/vmlinux", check=True).out) > 1 << 20
    assert vm.run("bpftool btf dump file /sys/kernel/btf/vmlinux | grep -q cgroup_subsys_state").code == 0
    assert vm.run("stat -fc %T /sys/fs/bpf").out == "bpf_fs\n"


def test_nothing_else_kills_for_memory(vm):
    assert vm.run("systemctl is-active systemd-oomd").out == "inactive\n"


def test_bus_answers(vm):
    said = vm.run("busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 "
                  "org.freedesktop.systemd1.Manager ControlGroup", check=True).out
    assert said == 's ""\n', said


def test_limits_of_a_unit_reach_its_cgroup(vm):
    unit = vm.spawn("exec sleep 60", properties=["MemoryMax=64M", "CPUQuota=50%"])
    folder = f"/sys/fs/cgroup/system.slice/{unit}"
    assert vm.run(f"cat {folder}/memory.max", check=True).out == f"{64 << 20}\n"
    assert vm.run(f"cat {folder}/cpu.max", check=True).out == "50000 100000\n"
    vm.stop(unit)


def test_memory_limit_kills_inside_the_unit_only(vm):
    unit = vm.spawn("exec perl -e 'my $x = q(x) x (200 << 20); sleep 60'",
                    properties=["MemoryMax=32M", "MemorySwapMax=0"])
    vm.wait_until(f"! systemctl is-active -q {unit}")
    assert "oom-kill" in vm.run(f"journalctl -b -u {unit} -o cat").out
    assert vm.run("systemctl is-system-running").out == "running\n"


def test_exit_codes_come_back(vm):
    for script, code in (("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("no-such-command", 127)):
        assert vm.run(script).code == code, script


def test_check_raises_with_the_output(vm):
    try:
        vm.run("echo to stdout; echo to stderr >&2; exit 7", check=True)
    except CommandFailed as failure:
        assert "exit 7" in str(failure) and "to stdout\nto stderr" in str(failure)
    else:
        raise AssertionError("a failing command passed its check")


def test_timeout_kills_the_whole_group(vm):
    result = vm.run("echo begun; (sleep 4711; echo no) & sleep 4711", timeout=1)
    assert result.timed_out and result.out == "begun\n" and result.seconds < 10, result
    assert vm.run("pgrep -fx 'sleep 4711'").out == ""


def test_nothing_outlives_its_command(vm):
    result = vm.run("sleep 4712 & echo done")
    assert result.out == "done\n" and result.seconds < 5, result
    assert vm.run("pgrep -fx 'sleep 4712'").out == ""


def test_commands_run_beside_each_other(vm):
    slow = vm.start("sleep 1; echo slow")
    assert vm.run("echo quick").seconds < 1
    assert slow.wait().out == "slow\n"


def test_output_without_end_is_stopped(vm):
    assert vm.run("yes", timeout=60).how.startswith("flood")


def test_large_output_is_whole(vm):
    out = vm.run("seq 1 500000", timeout=60, check=True).out
    assert out.count("\n") == 500000 and out.endswith("\n500000\n")


def test_binary_files_survive_both_ways(vm):
    data = os.urandom(3 << 20) + bytes(range(256))
    vm.put(data, "/tmp/lab test/blob")
    try:
        assert vm.get("/tmp/lab test/blob") == data
    finally:
        vm.run("rm -r '/tmp/lab test'")


def test_disks_are_attached(vm):
    assert vm.run("cat /proc/swaps").out.count("partition") == 1
    assert vm.run("findmnt -no FSTYPE /mnt/disk").out == "ext4\n"


def test_program_of_the_host_runs_with_its_libraries(vm):
    with tempfile.TemporaryDirectory() as folder:
        tree = bundle(["/usr/bin/zstd"], Path(folder) / "payload", prefix="/tmp/payload")
        assert not list((tree / "lib").glob("libc.so*"))
        for file in sorted(tree.rglob("*")):
            if file.is_file():
                vm.put(file, f"/tmp/payload/{file.relative_to(tree)}", mode="0755")
    assert vm.run("echo packed | /tmp/payload/bin/zstd -q | /tmp/payload/bin/zstd -dq", check=True).out == "packed\n"
    vm.run("rm -r /tmp/payload")


def test_agent_answers_when_memory_is_gone(vm):
    hog = vm.spawn("exec perl -e 'my @x; push @x, q(x) x (8 << 20) while 1'", properties=["OOMPolicy=continue"])
    available = "awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo"
    vm.wait_until(f"[ $({available}) -lt 100 ]", timeout=60)
    answers = [vm.run(available, check=True) for _ in range(30)]
    tightest, slowest = min(int(each.out) for each in answers), max(each.seconds for each in answers)
    vm.stop(hog)
    assert tightest < 100, f"never below {tightest} MiB available: the test proved nothing"
    assert slowest < 5, f"the slowest answer took {slowest:.1f} s"


def test_thousand_cgroups_fit(vm):
    vm.run("mkdir /sys/fs/cgroup/many && cd /sys/fs/cgroup/many && seq 1 1000 | xargs mkdir", check=True, timeout=60)
    assert vm.run("ls -d /sys/fs/cgroup/many/*/ | wc -l").out == "1000\n"
    vm.run("cd /sys/fs/cgroup/many && seq 1 1000 | xargs rmdir && rmdir /sys/fs/cgroup/many", check=True, timeout=60)
