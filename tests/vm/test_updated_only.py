# SPDX-License-Identifier: Apache-2.0
"""A sweep between decisions looks at updated cgroups alone, and reads what a whole sweep reads: tests/bpf, UpdatedOnly. The machine
that builds may refuse the hook that this needs (bpf_rstat_flush, 6.10), so the main job's tests run these here."""

import bpf_tests

CORE = True
KERNELS = ("newest", "6.12")  # the core runs on the last
PAYLOAD = bpf_tests.PAYLOAD
CPUS = 2


def test_a_sweep_of_updated_cgroups_reads_what_a_whole_one_reads(vm):
    skipped = bpf_tests.run(vm, "UpdatedOnly.*")
    assert not skipped, skipped
