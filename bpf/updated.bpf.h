/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which cgroups were updated since the pass before: a pass visits these alone, and most cgroups of
 * a dense node are not.
 *
 * The kernel keeps a list of the cgroups that used CPU time or whose memory statistics changed, for
 * each CPU (kernel/cgroup/rstat.c), and calls bpf_rstat_flush() for each of them at every flush,
 * no matter who asked for it (since 6.1). Each pass begins with a flush. Since 6.16 the memory
 * controller has a list of its own, for which the function is not called: there what another
 * cgroup's reclaim took is seen when the cgroup runs, or is read in its turn.
 *
 * A cgroup's bit is at its record's running number, which the cgroup itself holds: no lookup by
 * name or id at a flush. The numbers are right as long as no cgroup is made or removed.
 */
#pragma once

#include "kernel.bpf.h"

#include <headroom/bpf/abi.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Of 64 records. */
struct hr_update_bits {
  __u64 updated;
  __u64 numbered;                      /* the cgroup holds its number */
  __u64 active[HR_ACTIVE_SECONDS + 1]; /* by the second: a pass found it not to be idle */
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1); /* user space sets a 64th of the records */
  __type(key, __u32);
  __type(value, struct hr_update_bits);
} update_bits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u32);
} numbers SEC(".maps");

/* Cgroups made and removed, of every hierarchy. */
hr_u64 tree_changes;

static __always_inline struct hr_update_bits* bits_of(__u32 index) {
  __u32 at = index / 64;
  return bpf_map_lookup_elem(&update_bits, &at);
}

static __always_inline __u64 bit_of(__u32 index) {
  return 1ULL << (index & 63);
}

static __always_inline void mark_updated(struct cgroup* cgrp) {
  __u32* number = bpf_cgrp_storage_get(&numbers, cgrp, 0, 0);
  if (!number) return;
  struct hr_update_bits* bits = bits_of(*number);
  __u64 bit = bit_of(*number);
  if (bits && !(bits->updated & bit)) __sync_fetch_and_or(&bits->updated, bit);
}

SEC("fentry/bpf_rstat_flush")
int BPF_PROG(sweep_flushed, struct cgroup* cgrp) {
  mark_updated(cgrp);
  return 0;
}

/* A task that does not run may be moved there. */
SEC("tp_btf/cgroup_notify_populated")
int BPF_PROG(sweep_populated, struct cgroup* cgrp) {
  mark_updated(cgrp);
  return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(sweep_made, struct cgroup* cgrp) {
  __sync_fetch_and_add(&tree_changes, 1);
  return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(sweep_removed, struct cgroup* cgrp) {
  __sync_fetch_and_add(&tree_changes, 1);
  return 0;
}
