# SPDX-License-Identifier: Apache-2.0
"""A new user's first hour: install the package, look, evict, ask why, upgrade, remove, purge."""

import json
import re
from pathlib import Path

from node import AUDIT, ETC, Node, Pod, kubelet_configuration

PATIENT = True
PAYLOAD = Path(__file__).resolve().parents[2] / "build/deb/payload"
MEMORY = "2G"
DEBS = "/opt/headroom"
MOST_EXPOSED = 3.0  # of 10; what is left is the job, see headroomd(8), CONFINEMENT


class Installed(Node):
    """The daemon as the package installs it; nothing is put in its place, and only pods go."""

    def __init__(self, vm):
        self.vm, self.pods, self.recorders = vm, [], []

    def leave(self):
        self.leave_pods()


def install(vm):
    """As apt does it: first what it depends on, which is not in every image."""
    vm.run(f""". /etc/os-release
        if ls {DEBS}/depends/$VERSION_CODENAME/*.deb 2>/dev/null; then
          dpkg -i --skip-same-version {DEBS}/depends/$VERSION_CODENAME/*.deb || exit
        fi
        dpkg -i --skip-same-version {DEBS}/deb/$VERSION_CODENAME/*.deb""", timeout=300, check=True)
    vm.wait_until("headroomctl status >/dev/null", timeout=30)


def version(vm) -> str:
    return vm.run("dpkg-query -W -f '${Version}' headroom", check=True).out


def main_pid(vm) -> int:
    return int(vm.run("systemctl show headroomd -P MainPID", check=True).out)


def test_installed_it_runs_and_only_looks(vm):
    install(vm)
    vm.run("systemctl start headroomd && systemctl is-active headroomd && systemctl is-enabled headroomd", check=True)
    checked = vm.run("headroomctl check", timeout=60)
    print(checked.out)
    assert checked.code == 0, checked.out
    assert "mode observe" in vm.run("headroomctl top --once", check=True).out
    kube = vm.run("systemctl is-active headroom-kube; journalctl -b -u headroom-kube -o cat", check=True).out
    assert kube.startswith("active") and "nothing to do" in kube, kube
    assert "# default" in vm.run("headroomctl config", check=True).out
    for file in ("headroom.schema.json", "prometheus", "grafana"):
        vm.run(f"test -e /usr/share/headroom/{file}", check=True)
    offered = vm.run("""bash -c '. /usr/share/bash-completion/completions/headroomctl
        COMP_WORDS=(headroomctl ev) COMP_CWORD=1; _headroomctl; echo "${COMPREPLY[@]}"'""", check=True)
    assert offered.out.strip() == "evictions", offered.out
    # Debian's own test of an installed package.
    vm.run("sh -s", data=(Path(__file__).resolve().parents[2] / "debian/tests/service").read_bytes(), timeout=60, check=True)


def test_it_is_confined(vm):
    install(vm)
    listed = vm.run("systemd-analyze security headroomd.service --no-pager", timeout=60, check=True).out
    print(listed)
    exposure = float(re.search(r"Overall exposure level for headroomd.service: ([0-9.]+)", listed)[1])
    assert exposure <= MOST_EXPOSED, listed
    # And nothing of that is in its way: every program loads, and it says nothing of being refused.
    status = json.loads(vm.run("headroomctl status --json", check=True).out)
    assert all(program["loaded"] for program in status["programs"].values()), status["programs"]
    assert set(status["sources"].values()) == {"bpf"}, status["sources"]
    journal = vm.run("journalctl -b -u headroomd -o cat").out
    assert "not permitted" not in journal and "ermission denied" not in journal, journal


def test_an_unprivileged_user_reads_and_changes_nothing(vm):
    """No program of ours has more rights than its caller, and the policy of the bus keeps recordings for root."""
    install(vm)
    # An image may have left out the documents.
    files = vm.run("dpkg -L headroom headroom-kube | sort -u | grep . | while read -r file; do "
                   "find \"$file\" -maxdepth 0 -perm /6000 2>/dev/null; done; true", timeout=60, check=True).out
    assert files == "", files
    other = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    assert "mode observe" in vm.run(f"{other} headroomctl status", check=True).out
    for call in ("headroomctl record --for 1s -o /dev/null", "headroomctl taint stolen=1:NoExecute", "headroomctl cpus repack"):
        denied = vm.run(f"{other} {call}")
        assert denied.code == 1 and re.search("denied|not (authorized|permitted)|root", denied.out), (call, denied.out)
    # Without its interface the call meets another rule of the policy.
    bare = vm.run(f"""{other} dbus-send --system --print-reply --dest=io.headroom.Headroom1 /io/headroom/Headroom1 \
        Record string:x 2>&1; {other} busctl call io.headroom.Headroom1 /io/headroom/Headroom1 '' Record ht 0 1 2>&1; true""").out
    assert "seconds" not in bare, bare
    assert "stolen" not in vm.run("headroomctl status --json", check=True).out


def test_it_is_looked_after(vm):
    install(vm)
    shown = vm.run("systemctl show headroomd -p MemoryMin -p OOMScoreAdjust -p Slice -p Restart -p Type -p WatchdogUSec "
                   "-p TimeoutAbortUSec -p LimitCORE -p ManagedOOMPreference", check=True).out
    for line in ("MemoryMin=67108864", "OOMScoreAdjust=-999", "Slice=headroom.slice", "Restart=always", "Type=notify",
                 "WatchdogUSec=10s", "TimeoutAbortUSec=5s", "LimitCORE=0", "ManagedOOMPreference=omit"):
        assert line in shown.splitlines(), shown
    assert vm.run("cat /sys/fs/cgroup/headroom.slice/memory.min", check=True).out.strip() == "67108864"
    locked = vm.run(f"awk '/^VmLck:/ {{print $2}}' /proc/{main_pid(vm)}/status", check=True).out
    assert int(locked) > 4096, f"{locked.strip()} KiB are locked"
    # The loop first; after it what takes the memory of the dying, and what kills where cgroup.kill waits.
    threads = vm.run(f"ps -L -o cls=,comm= -p {main_pid(vm)}", check=True).out.splitlines()
    real_time = sorted(line.split() for line in threads if line.split()[0] != "TS")
    assert real_time == [["FF", "headroomd"], ["RR", "hr-kill"], ["RR", "hr-release"]] and len(threads) > 3, threads
    # However often it dies: no limit after which the node is unguarded.
    for _ in range(7):
        before = main_pid(vm)
        vm.run("systemctl kill -s KILL headroomd", check=True)
        vm.wait_until(f"[ $(systemctl show headroomd -P MainPID) -gt {before} ]", timeout=20)
    vm.wait_until("headroomctl status >/dev/null", timeout=30)


def test_a_wrong_configuration_is_not_tried_again(vm):
    install(vm)
    vm.run(f"cp {ETC}/headroom.yaml /tmp/good; echo 'maxPodz: 1' >> {ETC}/headroom.yaml; systemctl restart headroomd")
    try:
        shown = vm.run("sleep 3; systemctl show headroomd -p ActiveState -p NRestarts -p ExecMainStatus", check=True).out
        assert shown.split() == ["NRestarts=0", "ExecMainStatus=2", "ActiveState=failed"], shown
        assert "unknown key maxPodz" in vm.run("journalctl -b -u headroomd -o cat").out
    finally:
        vm.run(f"cp /tmp/good {ETC}/headroom.yaml; systemctl restart headroomd", check=True)


def test_it_evicts_says_why_and_an_upgrade_and_a_rotation_keep_all(vm):
    install(vm)
    with Installed(vm) as node:
        node.configure(kubelet_configuration("500Mi"))
        vm.run("headroomd --check-config && systemctl reload headroomd", check=True)
        quiet = node.run_pod(Pod("quiet"), "--hold 20M")
        node.run_pod(Pod("hog"), "--rate 400M --until 4G")
        records = node.wait_for_evictions(1)
        assert records[0]["pod"]["name"] == "hog" and records[0]["outcome"] == "evicted", records
        why = vm.run("headroomctl why default/hog", check=True).out
        print(why)
        assert "memory.available" in why and "hog" in why, why
        assert node.kernel_oom_kills() == 0

        vm.run("headroomctl taint team=a:NoSchedule", check=True)
        before, installed = main_pid(vm), version(vm)
        vm.run(f". /etc/os-release; dpkg -i {DEBS}/later/$VERSION_CODENAME/*.deb", timeout=120, check=True)
        assert version(vm) == installed + "+later"
        vm.wait_until("headroomctl status --json | grep -q '\"mode\":\"enforce\"'", timeout=30)
        assert main_pid(vm) != before
        assert [taint["taint"] for taint in node.status()["taints"]] == ["team=a:NoSchedule"], node.status()["taints"]
        assert node.evictions() == records
        assert node.alive(quiet)

        vm.run("logrotate --force /etc/logrotate.d/headroom", check=True)
        assert not node.evictions() and "hog" in vm.run(f"headroomctl evictions --file {AUDIT}.1", check=True).out
        node.run_pod(Pod("next"), "--rate 400M --until 4G")
        later = node.wait_for_evictions(1)
        assert [record["pod"]["name"] for record in later] == ["next"], later


def bounding_set(vm) -> int:
    """The daemon's, one bit for each capability."""
    return int(vm.run(f"awk '/^CapBnd:/ {{print $2}}' /proc/{main_pid(vm)}/status", check=True).out, 16)


def test_its_commands_run_elsewhere(vm):
    """The daemon has not the privileges for them; a unit of their own has, for as long as one runs."""
    install(vm)
    socket, unit = "/run/headroom/commands.sock", "headroom-commands@*.service"
    shown = vm.run(f"systemctl is-active headroom-commands.socket && stat -c '%a %U' {socket}", check=True).out.split()
    assert shown == ["active", "600", "root"], shown
    vm.run(f"! setpriv --reuid=65534 --regid=65534 --clear-groups test -w {socket}", check=True)
    for capability in (6, 7, 8, 18, 19):  # SETGID, SETUID, SETPCAP, SYS_CHROOT, SYS_PTRACE
        assert not bounding_set(vm) >> capability & 1, capability
    with Installed(vm) as node:
        node.configure(kubelet_configuration("100Mi"))
        vm.run("headroomd --check-config && systemctl restart headroomd", check=True)
        vm.wait_until("headroomctl status >/dev/null", timeout=30)
        seen = "cat /proc/self/status /proc/self/cgroup > /run/seen; sleep 5"
        leaver = node.run_pod(Pod("leaver", pre_stop=["/bin/sh", "-c", seen]), "--hold 20M")
        vm.wait_until("headroomctl pods | grep -q leaver", timeout=30)
        vm.run("headroomctl taint leave=now:NoExecute", check=True)
        vm.wait_until("test -s /run/seen", timeout=30)
        user = vm.run(f"systemctl show -P DynamicUser '{unit}'; stat -c %u /proc/$(systemctl show -P MainPID '{unit}')", check=True).out
        dynamic, uid = user.split()
        assert dynamic == "yes" and 61184 <= int(uid) <= 65519, user
        vm.wait_until(f"grep -q leaver {AUDIT}", timeout=60)
        ran = vm.run("cat /run/seen; rm /run/seen", check=True).out
        assert f"/{leaver.unit}" in ran and re.search(r"Uid:\s+0\s+0", ran) and re.search(r"NoNewPrivs:\s+1", ran), ran
        vm.wait_until(f"[ -z \"$(systemctl list-units --all --plain --no-legend '{unit}')\" ]", timeout=10)
        assert "was not run" not in vm.run("journalctl -b -u headroomd -o cat").out
        # Without the socket it says so, and the pod goes all the same.
        vm.run("headroomctl taint leave- && systemctl stop headroom-commands.socket", check=True)
        node.run_pod(Pod("follower", pre_stop=["/bin/touch", "/run/seen"]), "--hold 20M")
        vm.wait_until("headroomctl pods | grep -q follower", timeout=30)
        vm.run("headroomctl taint leave=now:NoExecute", check=True)
        vm.wait_until(f"grep -q follower {AUDIT}", timeout=60)
        assert "is headroom-commands.socket active?" in vm.run("journalctl -b -u headroomd -o cat; ! test -e /run/seen", check=True).out
        vm.run("headroomctl taint leave- && systemctl restart headroomd", check=True)
        vm.wait_until("headroomctl status >/dev/null && systemctl is-active headroom-commands.socket", timeout=30)


def test_removed_it_leaves_the_record_and_purged_nothing(vm):
    install(vm)
    vm.run("dpkg -r headroom headroom-kube headroom-dashboards", timeout=120, check=True)
    vm.run(f"! pgrep headroom && test -e {ETC}/headroom.yaml && test -d {Path(AUDIT).parent}", check=True)
    vm.run("dpkg -P headroom headroom-kube headroom-dashboards", timeout=120, check=True)
    vm.run("rm -rf /etc/headroom")  # what an operator wrote, here the tests before, stays
    left = vm.run("find / -xdev -name '*headroom*' -not -path '/opt/*'; find /run /sys/fs/cgroup -name '*headroom*'; "
                  "systemctl list-units --all --plain --no-legend '*headroom*'; "
                  "busctl list --no-legend | grep -i headroom; true", check=True).out
    assert left == "", left
