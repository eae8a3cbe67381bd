/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Throttle: how long a cgroup's run queues waited for CPU quota. cpu.stat has the sum of the waits;
 * this has their lengths as well, which decide the latency.
 *
 * Each CPU has its own run queue of the cgroup that has the quota. A wait lasts from the throttling
 * of one queue to its unthrottling, so the waits of several CPUs can add up to more than the time
 * that passed, as in cpu.stat. A queue can be throttled several times in a quota period, when
 * another one gives back what it has left. So the time in which at least one queue waited is kept
 * as well: its end is where the kernel's own list of the cgroup's throttled queues becomes empty.
 */
#include "kernel.bpf.h"
#include "waits.bpf.h"

#include <headroom/bpf/stall_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct hr_watch_config config;

/* As in stall.bpf.c: the first two are updated after the map. */
struct hr_throttles node;
hr_u64 removed_cgroups;
struct hr_losses losses;

/* cgroup id -> its waits; user space may set max_entries before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u64);
  __type(value, struct hr_throttles);
} throttles SEC(".maps");

/* Used once `throttles` is full; entries are allocated when they are added. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, struct hr_throttles);
} more_throttles SEC(".maps");

/* run queue -> when its wait began. The entry of a queue whose cgroup is removed is evicted by LRU.
 */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64);
  __type(value, __u64);
} waiting SEC(".maps");

static const struct hr_throttles kNone;

/* hr_throttles.any_since is CLOCK_MONOTONIC: one waits since then, or with this bit none does. */
#define HR_NONE_WAITS (1ULL << 63)

static __always_inline int is_throttled(struct cfs_rq* queue) {
  return (int)BPF_CORE_READ_BITFIELD_PROBED(queue, throttled); /* one bit since 6.18 */
}

/* Made if it is not there. Two may try at once; either way it is there then. */
static __always_inline struct hr_throttles* entry_of(__u64 cgroup) {
  struct hr_throttles* found = bpf_map_lookup_elem(&throttles, &cgroup);
  if (!found) found = bpf_map_lookup_elem(&more_throttles, &cgroup);
  if (found) return found;
  bpf_map_update_elem(&throttles, &cgroup, &kNone, BPF_NOEXIST);
  found = bpf_map_lookup_elem(&throttles, &cgroup);
  if (found) return found;
  bpf_map_update_elem(&more_throttles, &cgroup, &kNone, BPF_NOEXIST);
  return bpf_map_lookup_elem(&more_throttles, &cgroup);
}

/* On exit of the function: new quota may have been found, and then the queue is not throttled. */
SEC("fexit/throttle_cfs_rq")
int BPF_PROG(throttle, struct cfs_rq* queue) {
  struct cgroup* cgrp = queue->tg->css.cgroup;
  if (!watched(cgrp) || !is_throttled(queue)) return 0;
  __u64 key = (__u64)queue;
  __u64 since = bpf_ktime_get_ns();
  if (bpf_map_update_elem(&waiting, &key, &since, BPF_ANY)) __sync_fetch_and_add(&losses.map, 1);
  struct hr_throttles* cgroup = entry_of(cgrp->kn->id);
  if (!cgroup) return 0;
  __u64 before = cgroup->any_since;
  if (!before || before & HR_NONE_WAITS)
    __sync_val_compare_and_swap(&cgroup->any_since, before, since);
  return 0;
}

static __always_inline int any_throttled(struct cfs_rq* queue) {
  struct list_head* queues = &queue->tg->cfs_bandwidth.throttled_cfs_rq;
  return (__u64)queues->next != (__u64)queues;
}

static __always_inline void charge(struct cfs_rq* queue, __u64 cgroup, __u64 since) {
  __u64 now = bpf_ktime_get_ns();
  add_wait(&node.waits, now - since);
  struct hr_throttles* found = entry_of(cgroup);
  if (!found) {
    __sync_fetch_and_add(&losses.map, 1);
    return;
  }
  add_wait(&found->waits, now - since);
  if (any_throttled(queue)) return;
  /*
   * If another CPU has ended it already, the time up to then is counted: two queues that end
   * together both find the list empty, and this one may have been throttled while the other ended.
   */
  __u64 before = __sync_lock_test_and_set(&found->any_since, HR_NONE_WAITS | now);
  __u64 from = before ? before & ~HR_NONE_WAITS : since;
  if (before & HR_NONE_WAITS && from < since) from = since;
  if (now > from) __sync_fetch_and_add(&found->any_ns, now - from);
}

/* On exit of the function: without quota it returns and leaves the queue throttled. */
SEC("fexit/unthrottle_cfs_rq")
int BPF_PROG(unthrottle, struct cfs_rq* queue) {
  if (is_throttled(queue)) return 0;
  __u64 key = (__u64)queue;
  __u64* entry = bpf_map_lookup_elem(&waiting, &key);
  if (!entry) return 0;
  __u64 since = *entry;
  bpf_map_delete_elem(&waiting, &key);
  charge(queue, queue->tg->css.cgroup->kn->id, since);
  return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(gone, struct cgroup* cgrp) {
  if (!watched(cgrp)) return 0;
  __u64 id = cgrp->kn->id;
  long kept = bpf_map_delete_elem(&throttles, &id);
  if (kept) kept = bpf_map_delete_elem(&more_throttles, &id);
  if (!kept) __sync_fetch_and_add(&removed_cgroups, 1);
  return 0;
}
