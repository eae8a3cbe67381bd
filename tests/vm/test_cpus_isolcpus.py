# SPDX-License-Identifier: Apache-2.0
"""A machine that keeps two CPUs out of the scheduler's hands at boot: given out, or left alone, as one chooses."""

import json

from test_cpus import ALL, configuration, settled, sleep_in, watch, whole
from node import Node

KERNELS = ("6.1",)
PATIENT = True
MEMORY = "2G"
CPUS = 8
TOPOLOGY = "sockets=2,cores=2,threads=2"
NUMA = 2
CMDLINE = "isolcpus=6-7"

ISOLATED = {6, 7}


def test_isolated_cpus_are_left_alone_if_one_says_so(vm):
    with Node(vm) as node:
        node.start(configuration(excludeIsolated=True))
        web = sleep_in(node, whole("web", 2))
        _, (_, entries, shared) = settled(vm)
        greedy = sleep_in(node, whole("greedy", 4))
        vm.wait_until("headroomctl cpus --json | grep -q 'not enough cpus'")
        _, (seen, entries, shared) = settled(vm)
        assert not (shared | entries[web.uid]) & ISOLATED and greedy.uid not in entries, (entries, shared)
        assert seen[greedy.uid] == [shared], "who is refused shares, and not the isolated ones"
        answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
        assert answer["isolated"] == "6-7", answer
        drawn = vm.run("headroomctl cpus", check=True).out
        assert "left alone" in drawn, drawn


def test_else_they_are_given_out_as_all_others(vm):
    with Node(vm) as node:
        node.start(configuration())
        pod = sleep_in(node, whole("all", 7))
        vm.wait_until("headroomctl cpus --json | grep -q '\"requested\":7'")
        _, (_, entries, shared) = settled(vm)
        assert entries[pod.uid] == ALL - {0} and shared == {0}, (entries, shared)
        assert watch(vm)[0][pod.uid] == [ALL - {0}]
