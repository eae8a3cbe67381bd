# SPDX-License-Identifier: Apache-2.0
"""What each program of ours may write, and where it listens: as its unit and the default configuration leave it."""

from kube_node import Authority, KubeNode

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"

# The unit's own, or of the kernel: no file of the host is below them. systemd 257 leaves sysfs writable with ProtectKernelTunables=.
PRIVATE = ("/proc", "/sys", "/dev", "/tmp", "/var/tmp", "/run/credentials")


def writable(vm, unit):
    """The mounts that UNIT may write, PRIVATE aside; of root's access(2) only a read-only mount is refused."""
    pid = vm.run(f"systemctl show -P MainPID {unit}", check=True).out.strip()
    mounts = vm.run(f"nsenter --mount=/proc/{pid}/ns/mnt sh -c 'findmnt -rn -o TARGET | while read -r at; do test -w $at && echo $at; done; true'",
                    check=True).out
    return {each for each in mounts.split() if not any(each == own or each.startswith(f"{own}/") for own in PRIVATE)}


def listening(vm, program):
    """The addresses at which PROGRAM accepts TCP connections."""
    return {line.split()[3] for line in vm.run("ss -ltnpH", check=True).out.splitlines() if f'"{program}"' in line}


def allowed_calls(vm, unit):
    """As systemd lists them: a list of those that are allowed, each by its name."""
    return set(vm.run(f"systemctl show -P SystemCallFilter {unit}", check=True).out.split())


# io_uring, the kernel's keys, the memory of other processes, and the worst of @privileged and @resources.
REFUSED = {"io_uring_setup", "io_submit", "keyctl", "add_key", "process_vm_writev", "mount", "chroot", "capset", "setuid", "chown", "syslog",
           "ptrace", "init_module", "reboot"}


def test_a_program_writes_and_listens_nowhere_else(vm):
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration())
        node.start_kube()
        node.wait_for(node.kube_status, lambda status: status.get("lastPollSucceeded"))
        print(f"    headroomd: {writable(vm, 'headroomd')} {listening(vm, 'headroomd')}")
        print(f"    headroom-kube: {writable(vm, 'headroom-kube')} {listening(vm, 'headroom-kube')}")
        assert writable(vm, "headroomd") == {"/run/headroom", "/run/systemd", "/var/lib/headroom", "/var/log/headroom"}
        assert writable(vm, "headroom-kube") == {"/run/private/headroom-kube", "/var/lib/private/headroom-kube"}
        assert listening(vm, "headroomd") == {"127.0.0.1:9750"} and listening(vm, "headroom-kube") == set()
        for unit, needed in (("headroomd", {"bpf", "open_by_handle_at", "pidfd_send_signal", "process_mrelease"}), ("headroom-kube", {"connect"})):
            calls = allowed_calls(vm, unit)
            assert needed <= calls and not calls & REFUSED, (unit, needed - calls, calls & REFUSED)
