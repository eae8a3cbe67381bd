# SPDX-License-Identifier: Apache-2.0
"""A change that a killed daemon left, for what removes headroom: no next daemon restores it."""

from node import Node, Pod

ONCE = "/run/systemd/system/headroomd.service.d/once.conf"
BEFORE = 200


def _score(pod: Pod) -> str:
    return f"$(cat /proc/$(head -1 {pod.cgroup}/{pod.unit}/cgroup.procs)/oom_score_adj)"


def kill_without_another(node: Node) -> None:
    node.vm.put(b"[Service]\nRestart=no\n", ONCE)
    node.vm.run("systemctl daemon-reload && systemctl kill -s KILL headroomd.service", check=True)
    node.vm.wait_until("systemctl is-failed --quiet headroomd.service", timeout=30)


def restart_again(node: Node) -> None:
    node.vm.run(f"rm {ONCE}; rmdir --ignore-fail-on-non-empty {ONCE.rsplit('/', 1)[0]}; systemctl daemon-reload", check=True)


def leave_one(node: Node) -> Pod:
    """A pod whose oom_score_adj headroomd has raised (oomScoreAdj: mirror), without headroomd."""
    pod = node.run_pod(Pod("changed", priority=-10), "--hold 20M", f"OOMScoreAdjust={BEFORE}")
    node.vm.wait_until(f"[ {_score(pod)} -gt {BEFORE} ]", timeout=30)
    kill_without_another(node)
    node.vm.run(f"[ {_score(pod)} -gt {BEFORE} ]", check=True)
    return pod


def expect_restored(node: Node, pod: Pod) -> None:
    restart_again(node)
    score = int(node.vm.run(f"echo {_score(pod)}", check=True).out)
    assert score == BEFORE, f"oom_score_adj is {score}, and was {BEFORE}"
