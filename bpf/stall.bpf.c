/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stall: which cgroup's tasks waited for memory, for how long, and whose fault it was.
 *
 * The kernel brackets every such wait with psi_memstall_enter() and _leave(): direct reclaim,
 * reclaim for a limit, the sleep that memory.high and memory.swap.high impose, compaction, and
 * waiting for pages that were evicted a moment ago. We time the same brackets (they are called with
 * psi=0 too), and note in between what was entered. Where nothing was, it is a refault, or that
 * sleep; a refault is the node's doing unless the cgroup or one above it stands at a limit of its
 * own, which then is the cause.
 *
 * Where functions cannot be hooked, reclaim's own tracepoints are the brackets (hr_stall_brackets).
 *
 * All of this is on slow paths: a wait for memory costs microseconds at the least. A wait is
 * charged when it ends, to the cgroup of the task that waited; kernel threads, which reclaim in
 * the background, are left out.
 */
#include "kernel.bpf.h"
#include "waits.bpf.h"

#include <headroom/bpf/stall_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* How deep below the root a limit is looked for; a container of a pod is 4 deep. */
#define DEPTH 10
/* A charge is made for up to 64 pages at once, and as many may lie unused on each CPU. */
#define CHARGE_BATCH 64

const volatile struct hr_watch_config config;

/*
 * All cgroups together, how many have left the map, and our losses: read through a mapping. Both of
 * the first change after the map did: while they stand still, so does all that is in it.
 */
struct hr_stalls node;
hr_u64 removed_cgroups;
struct hr_losses losses;

/* NUMA nodes that have memory, of the first 64; 0: not known. User space keeps it up to date. */
hr_u64 memory_nodes;

/* cgroup id -> its stalls; user space may set max_entries before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64);
  __type(value, struct hr_stalls);
} stalls SEC(".maps");

/* The same once `stalls` is full: its entries take memory only when they are made. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, struct hr_stalls);
} more_stalls SEC(".maps");

struct wait {
  __u64 since;
  __u64 flags; /* the caller's variable: identifies the outermost bracket */
  __u32 cause; /* hr_stall_cause + 1, 0 while unknown */
  __u32 reserved;
};
/*
 * thread id -> the wait it is in. Least recently used: should a leave ever be missed (a program is
 * skipped when it interrupts itself), what it left behind makes room by itself.
 */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct wait);
} waiting SEC(".maps");

/* Too large for the stack. */
static const struct hr_stalls kNone;

static __always_inline __u32 thread(void) {
  return (__u32)bpf_get_current_pid_tgid();
}

static __always_inline int is_kernel_thread(void) {
  struct task_struct* task = (void*)bpf_get_current_task();
  return (BPF_CORE_READ(task, flags) & PF_KTHREAD) != 0;
}

static __always_inline void begin(__u32 id, __u64 flags, __u32 cause) {
  if (is_kernel_thread()) return;
  struct wait begun = {.since = bpf_ktime_get_ns(), .flags = flags, .cause = cause};
  if (bpf_map_update_elem(&waiting, &id, &begun, BPF_ANY)) __sync_fetch_and_add(&losses.map, 1);
}

static __always_inline void set_stall_cause(__u32 cause) {
  __u32 id = thread();
  struct wait* wait = bpf_map_lookup_elem(&waiting, &id);
  /* The last one counts: reading a page back may need reclaim first. */
  if (wait) wait->cause = cause + 1;
}

/* --- whose fault ----------------------------------------------------------------------------- */

/* Within a sixteenth of a limit that is one. */
static __always_inline int is_at_limit(unsigned long usage, unsigned long limit) {
  return usage >= limit - limit / 16;
}

/* Since 5.8 (memcg: automatically penalize tasks with high swap use). It reclaims nothing. */
static __always_inline int is_above_swap_high(struct mem_cgroup* memcg) {
  if (!bpf_core_field_exists(memcg->swap)) return 0;
  unsigned long usage = (unsigned long)BPF_CORE_READ(memcg, swap.usage.counter);
  return usage > BPF_CORE_READ(memcg, swap.high);
}

/*
 * Whose limit makes this task lose pages, or sleep: its cgroup's, or that of one above it. Above
 * memory.high or memory.swap.high a task sleeps when it returns to user space, without any reclaim
 * (mem_cgroup_handle_over_high()), however near memory.max is: kubelets with MemoryQoS set high to
 * more than 15/16 of max. `reclaims`: the task waits in reclaim for a limit, which is max where max
 * refused the charge.
 */
static __always_inline __u32 limiting_cause(__u32 otherwise, int reclaims) {
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) return otherwise;
  struct task_struct* task = (void*)bpf_get_current_task();
  struct css_set* set = BPF_CORE_READ(task, cgroups);
  struct cgroup_subsys_state* css = 0;
  bpf_core_read(&css, sizeof(css),
                &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
  __u32 near = HR_STALL_CAUSES;
  for (int i = 0; i < DEPTH && css; ++i) {
    struct cgroup_subsys_state* parent = BPF_CORE_READ(css, parent);
    if (!parent) break;                    /* the root has no limits */
    struct mem_cgroup* memcg = (void*)css; /* which is its first member */
    unsigned long usage = (unsigned long)BPF_CORE_READ(memcg, memory.usage.counter);
    unsigned long max = BPF_CORE_READ(memcg, memory.max);
    unsigned long high = BPF_CORE_READ(memcg, memory.high);
    if (reclaims && usage + CHARGE_BATCH > max) return HR_STALL_LIMIT;
    if (usage > high || (!reclaims && is_above_swap_high(memcg))) return HR_STALL_HIGH;
    if (near == HR_STALL_CAUSES && is_at_limit(usage, max)) near = HR_STALL_LIMIT;
    if (near == HR_STALL_CAUSES && is_at_limit(usage, high)) near = HR_STALL_HIGH;
    css = parent;
  }
  return near == HR_STALL_CAUSES ? otherwise : near;
}

/* The first 64 nodes that a task may take memory of. */
static __always_inline hr_u64 allowed_nodes(void) {
  struct task_struct* task = (void*)bpf_get_current_task();
  hr_u64 allowed = ~0ull;
  if (bpf_core_field_exists(task->mems_allowed))
    bpf_core_read(&allowed, sizeof(allowed), &task->mems_allowed.bits[0]);
  if (!bpf_core_field_exists(task->mempolicy)) return allowed;
  struct mempolicy* policy = BPF_CORE_READ(task, mempolicy);
  if (!policy || !bpf_core_field_exists(policy->nodes)) return allowed;
  hr_u64 bound = 0;
  if (BPF_CORE_READ(policy, mode) == MPOL_BIND &&
      !bpf_core_read(&bound, sizeof(bound), &policy->nodes.bits[0]))
    allowed &= bound;
  return allowed;
}

/*
 * Direct reclaim is the node's shortage only where the task could have had memory of any NUMA node.
 * Confined by its cpuset or its policy it runs short of the nodes it may use: a limit of its own.
 */
static __always_inline __u32 direct_reclaim_cause(void) {
  return memory_nodes & ~allowed_nodes() ? HR_STALL_LIMIT : HR_STALL_GLOBAL;
}

/* Made if it is not there. Two may try at once; either way it is there then. */
static __always_inline struct hr_stalls* entry_of(__u64 cgroup) {
  struct hr_stalls* found = bpf_map_lookup_elem(&stalls, &cgroup);
  if (!found) found = bpf_map_lookup_elem(&more_stalls, &cgroup);
  if (found) return found;
  bpf_map_update_elem(&stalls, &cgroup, &kNone, BPF_NOEXIST);
  found = bpf_map_lookup_elem(&stalls, &cgroup);
  if (found) return found;
  bpf_map_update_elem(&more_stalls, &cgroup, &kNone, BPF_NOEXIST);
  return bpf_map_lookup_elem(&more_stalls, &cgroup);
}

static __always_inline void charge(__u64 cgroup, __u32 cause, __u64 ns) {
  struct hr_stalls* found = entry_of(cgroup);
  if (found)
    add_wait(&found->causes[cause], ns);
  else
    __sync_fetch_and_add(&losses.map, 1);
  add_wait(&node.causes[cause], ns);
}

static __always_inline void end(__u32 id, struct wait* wait) {
  __u64 ns = bpf_ktime_get_ns() - wait->since;
  __u32 cause = wait->cause ? wait->cause - 1 : limiting_cause(HR_STALL_REFAULT, 0);
  bpf_map_delete_elem(&waiting, &id);
  if (cause < HR_STALL_CAUSES) charge(bpf_get_current_cgroup_id(), cause, ns);
}

/* --- brackets of every wait ------------------------------------------------------------------ */

SEC("fentry/psi_memstall_enter")
int BPF_PROG(enter, unsigned long* flags) {
  __u32 id = thread();
  struct wait* outer = bpf_map_lookup_elem(&waiting, &id);
  /* The stack grows down: a bracket inside the outer one has its variable below. */
  if (outer && (__u64)flags < outer->flags) return 0;
  begin(id, (__u64)flags, 0);
  return 0;
}

SEC("fentry/psi_memstall_leave")
int BPF_PROG(leave, unsigned long* flags) {
  __u32 id = thread();
  struct wait* wait = bpf_map_lookup_elem(&waiting, &id);
  if (wait && wait->flags == (__u64)flags) end(id, wait);
  return 0;
}

/* memory.max refused the charge; or the usage is above memory.high, and max is not reached. */
SEC("fentry/try_to_free_mem_cgroup_pages")
int BPF_PROG(limit_reclaim, struct mem_cgroup* memcg) {
  unsigned long usage = (unsigned long)memcg->memory.usage.counter;
  unsigned long high = memcg->memory.high;
  int at_max = usage + CHARGE_BATCH > memcg->memory.max;
  set_stall_cause(!at_max && usage > high ? HR_STALL_HIGH : HR_STALL_LIMIT);
  return 0;
}

SEC("tp_btf/mm_compaction_try_to_compact_pages")
int compaction(void* ctx) {
  set_stall_cause(HR_STALL_COMPACTION);
  return 0;
}

/* --- reclaim: what a wait is for, or else the brackets themselves ---------------------------- */

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int direct_reclaim(void* ctx) {
  if (config.stall_source == HR_STALL_SOURCE_MEMSTALL)
    set_stall_cause(direct_reclaim_cause());
  else
    begin(thread(), 0, direct_reclaim_cause() + 1);
  return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int memcg_reclaim(void* ctx) {
  begin(thread(), 0, limiting_cause(HR_STALL_LIMIT, 1) + 1);
  return 0;
}

static __always_inline int reclaimed(void) {
  __u32 id = thread();
  struct wait* wait = bpf_map_lookup_elem(&waiting, &id);
  if (wait) end(id, wait);
  return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int direct_reclaimed(void* ctx) {
  return reclaimed();
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int memcg_reclaimed(void* ctx) {
  return reclaimed();
}

/* No task is left in it that could wait. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(gone, struct cgroup* cgrp) {
  if (!watched(cgrp)) return 0;
  __u64 id = cgrp->kn->id;
  long kept = bpf_map_delete_elem(&stalls, &id);
  if (kept) kept = bpf_map_delete_elem(&more_stalls, &id);
  if (!kept) __sync_fetch_and_add(&removed_cgroups, 1);
  return 0;
}
