/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lifecycle: cgroups created, emptied and removed, the kernel OOM killer's victims, and the exits
 * of the processes that headroomd killed, each reported once through the ring.
 *
 * Processes exit often: while headroomd has killed nothing, an exit costs one load and one compare.
 */
#include "event_ring.bpf.h"
#include "waits.bpf.h"

#include <headroom/bpf/stall_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A killed pod's processes are in its cgroup or at most this many levels below it. */
#define DEPTH 8

const volatile struct hr_watch_config config;

/* How many ids `killed` holds; user space writes it. */
__u32 killed_count;
/* The cgroup whose limit the kernel is killing for: set and used under the kernel's oom_lock. */
__u64 oom_limit_of;

/* cgroup id -> 1; user space adds an entry before the kill, and removes it afterwards. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 256);
  __type(key, __u64);
  __type(value, __u64);
} killed SEC(".maps");

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(born, struct cgroup* cgrp) {
  if (!watched(cgrp)) return 0;
  struct hr_event* event = reserve_event(HR_EVENT_CREATED, cgrp->kn->id);
  if (!event) return 0;
  struct cgroup_subsys_state* parent = cgrp->self.parent;
  if (parent) event->other = parent->cgroup->kn->id;
  bpf_ringbuf_submit(event, 0);
  return 0;
}

SEC("tp_btf/cgroup_notify_populated")
int BPF_PROG(emptied, struct cgroup* cgrp, const char* path, _Bool populated) {
  if ((populated & 1) || !watched(cgrp)) return 0;
  struct hr_event* event = reserve_event(HR_EVENT_UNPOPULATED, cgrp->kn->id);
  if (event) bpf_ringbuf_submit(event, 0);
  return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(gone, struct cgroup* cgrp) {
  if (!watched(cgrp)) return 0;
  struct hr_event* event = reserve_event(HR_EVENT_REMOVED, cgrp->kn->id);
  if (event) bpf_ringbuf_submit(event, 0);
  return 0;
}

/* --- the kernel's OOM killer ----------------------------------------------------------------- */

SEC("fentry/oom_kill_process")
int BPF_PROG(oom_reason, struct oom_control* control) {
  struct mem_cgroup* memcg = control->memcg;
  oom_limit_of = 0;
  if (memcg) oom_limit_of = memcg->css.cgroup->kn->id;
  return 0;
}

/* Called once per victim: with memory.oom.group, for each process of the group. */
SEC("fentry/__oom_kill_process")
int BPF_PROG(oom_kill, struct task_struct* victim) {
  struct hr_event* event = reserve_event(HR_EVENT_OOM_KILL, victim->cgroups->dfl_cgrp->kn->id);
  if (!event) return 0;
  event->pid = (__u32)victim->tgid;
  event->other = oom_limit_of;
  bpf_core_read_str(event->comm, sizeof(event->comm), &victim->comm);
  bpf_ringbuf_submit(event, 0);
  return 0;
}

/* --- exits of processes that headroomd killed --------------------------------------------------
 */

/* The killed cgroup that contains the current task; 0 if there is none. */
static __always_inline __u64 killed_above(__u64 own) {
  if (bpf_map_lookup_elem(&killed, &own)) return own;
  for (int level = 1; level <= DEPTH; ++level) {
    __u64 above = bpf_get_current_ancestor_cgroup_id(level);
    if (!above || above == own) return 0; /* at the task's own level */
    if (bpf_map_lookup_elem(&killed, &above)) return above;
  }
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct* task) {
  if (!killed_count) return 0;
  struct signal_struct* signal = task->signal;
  if (signal->live.counter != 0) return 0; /* a thread; the process has others */
  __u64 own = bpf_get_current_cgroup_id();
  __u64 above = killed_above(own);
  if (!above) return 0;
  struct hr_event* event = reserve_event(HR_EVENT_EXIT, own);
  if (!event) return 0;
  event->other = above;
  event->pid = (__u32)task->tgid;
  event->status = (__u32)task->exit_code;
  bpf_core_read_str(event->comm, sizeof(event->comm), &task->comm);
  bpf_ringbuf_submit(event, 0);
  return 0;
}
