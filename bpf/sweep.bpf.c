/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweep: the state of every cgroup, in one pre-order pass of the cgroup iterator, one hr_record
 * each, written to an array that user space maps. (Past 400 lines, because it is one BPF program:
 * its functions are inlined into one, and nothing else uses them.)
 *
 * The records go to a map because the iterator's own output ends at 32 KiB and cannot resume
 * (6.1 to 7.2: EOPNOTSUPP on the second read). Counters are not of one instant, each is as of its
 * load. Before 6.10 the pass holds cgroup_mutex; since then it holds the RCU read lock alone.
 *
 * Loads are plain BTF loads, a few instructions each, where the verifier knows the type. A
 * controller's state is reached from its css, and that step is a cast: bpf_rdonly_cast() makes it
 * free since 6.2; on 6.1 the fields behind it are read by bpf_probe_read_kernel(), ~10 ns each.
 *
 * Most cgroups of a dense node are idle, so a load whose answer follows from another one is left
 * out: a cgroup that was never throttled has no throttled time, one that was never scanned has no
 * reclaimed pages. A record is written once: nothing is cleared first; fields that a pass does not
 * know are cleared at its end. An idle cgroup's record is read whole only in one of several passes.
 * To see that it is idle, a pass reads one page of its state (that of its struct cgroup), where the
 * whole record reads ten: at thousands of cgroups the pages cost more than the instructions. Before
 * a decision, a pass also compares the memory counters: what ranking uses is then current, and the
 * rest of the record is a few passes old. Where the kernel says which cgroups were updated, a pass
 * reads no other one's state at all (updated.bpf.h).
 */
#include "kernel.bpf.h"
#include "updated.bpf.h"

#include <headroom/bpf/abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct hr_sweep_config config;
struct hr_sweep_pass pass;
/* Block devices that are read for one cgroup, at most. */
const volatile hr_u32 io_devices = 256;
/* Major numbers of devices that are made of others, which are counted in their place; 0: none. */
#define HR_STACKED_MAJORS 4
const volatile hr_u32 stacked_majors[HR_STACKED_MAJORS];
/*
 * Records of this pass that are without io because their cgroup has used more devices: how many,
 * and the running numbers of the first of them. User space clears the count before a pass.
 */
#define HR_INCOMPLETE_IO 64
hr_u32 incomplete_io_count;
hr_u32 incomplete_io[HR_INCOMPLETE_IO];
/* The running number of the cgroup that is being visited. */
static hr_u32 visited_number;

/* running number → record; user space sets max_entries before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_record);
} records SEC(".maps");

/* running number → what is kept of it to tell whether it moved; as many as there are records. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_change_stamp);
} change_stamps SEC(".maps");

/* Weak: a call to a missing one is poisoned, and config.kfuncs keeps it from being reached. The
 * first is declared as bpf_core_read.h of libbpf 1.4 does. */
extern void* bpf_rdonly_cast(const void* obj, __u32 btf_id) __ksym __weak;
/* Flushes every subsystem's rstat of the tree below. */
extern void cgroup_rstat_flush(struct cgroup* cgrp) __ksym __weak;
/* Its successor flushes one subsystem; the cgroup's own css stands for CPU time. */
extern void css_rstat_flush(struct cgroup_subsys_state* css) __ksym __weak;
extern struct mem_cgroup* bpf_get_mem_cgroup(struct cgroup_subsys_state* css) __ksym __weak;
extern void bpf_put_mem_cgroup(struct mem_cgroup* memcg) __ksym __weak;
extern unsigned long bpf_mem_cgroup_page_state(struct mem_cgroup* memcg, int idx) __ksym __weak;
extern unsigned long bpf_mem_cgroup_vm_events(struct mem_cgroup* memcg,
                                              enum vm_event_item event) __ksym __weak;
extern void bpf_mem_cgroup_flush_stats(struct mem_cgroup* memcg) __ksym __weak;
extern int bpf_iter_css_new(struct bpf_iter_css* it, struct cgroup_subsys_state* start,
                            unsigned int flags) __ksym __weak;
extern struct cgroup_subsys_state* bpf_iter_css_next(struct bpf_iter_css* it) __ksym __weak;
extern void bpf_iter_css_destroy(struct bpf_iter_css* it) __ksym __weak;
extern struct cgroup* bpf_cgroup_from_id(__u64 id) __ksym __weak;
extern struct cgroup* bpf_cgroup_ancestor(struct cgroup* cgrp, int level) __ksym __weak;
extern void bpf_cgroup_release(struct cgroup* cgrp) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
#ifndef __arg_trusted
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#endif
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define DESCENDANTS_PRE 2 /* BPF_CGROUP_ITER_DESCENDANTS_PRE */

#define wanted(group) (config.groups & (group))
#define has(kfunc) (config.kfuncs & (kfunc))

/* The css as its controller's own type. */
#define css_as(css, type) \
  ((type*)(has(HR_KFUNC_RDONLY_CAST) ? bpf_rdonly_cast(css, bpf_core_type_id_kernel(type)) : (css)))

/*
 * One field behind a css_as() pointer. `direct` is constant in each copy of the function that
 * reads; kept apart, the two ways do not share an address computed beforehand, and a direct read is
 * one load instruction.
 */
#define read(place)                                                                                \
  ({                                                                                               \
    typeof(place) got_;                                                                            \
    if (direct) {                                                                                  \
      got_ = (place);                                                                              \
    } else {                                                                                       \
      typeof(place) probed_ = 0;                                                                   \
      bpf_probe_read_kernel(&probed_, sizeof(probed_), __builtin_preserve_access_index(&(place))); \
      got_ = probed_;                                                                              \
    }                                                                                              \
    got_;                                                                                          \
  })

/* A counter summed over CPUs can be briefly negative; the files print 0 then. */
static __always_inline hr_u64 bytes(long pages, hr_u32 shift) {
  return pages < 0 ? 0 : (hr_u64)pages << shift;
}

/* PAGE_COUNTER_MAX is what the files print as "max". */
static __always_inline hr_u64 limit_bytes(unsigned long pages, hr_u32 shift) {
  return pages >= 0x7fffffffffffffffUL >> shift ? HR_NO_LIMIT : (hr_u64)pages << shift;
}

/* --- once, at the top of a pass -------------------------------------------------------------- */

static __always_inline void flush_memory(struct cgroup* cgrp) {
  if (!has(HR_KFUNC_MEMCG)) return;
  struct mem_cgroup* memcg = bpf_get_mem_cgroup(&cgrp->self);
  if (!memcg) return;
  /* The kernel's own flushes only what is more than 64 changes for each CPU. */
  if (has(HR_KFUNC_CSS_FLUSH))
    css_rstat_flush(&memcg->css);
  else
    bpf_mem_cgroup_flush_stats(memcg);
  bpf_put_mem_cgroup(memcg);
  pass.flushed |= HR_MEMORY_STAT | HR_RECLAIM;
}

static __always_inline void flush(struct cgroup* cgrp) {
  pass.flushed = 0;
  if (has(HR_KFUNC_CGROUP_FLUSH)) {
    if (!wanted(HR_CPU | HR_MEMORY_STAT | HR_RECLAIM | HR_IO)) return;
    cgroup_rstat_flush(cgrp);
    pass.flushed = HR_CPU | HR_MEMORY_STAT | HR_RECLAIM | HR_IO;
    return;
  }
  if (has(HR_KFUNC_CSS_FLUSH) && wanted(HR_CPU)) {
    css_rstat_flush(&cgrp->self);
    pass.flushed |= HR_CPU;
  }
  if (wanted(HR_MEMORY_STAT | HR_RECLAIM)) flush_memory(cgrp);
}

/* --- memory ---------------------------------------------------------------------------------- */

#define event_count(name) \
  memcg->memory_events[bpf_core_enum_value(enum memcg_memory_event, name)].counter

/* Five neighbours at once where each read is a call: that is 6.1, whose order is known. */
#define probe_five(five, array) \
  bpf_probe_read_kernel(five, sizeof(five), __builtin_preserve_access_index(&(array)))

static __always_inline void fill_events(struct hr_record* r, struct mem_cgroup* memcg,
                                        const int direct) {
  long five[5] = {};
  if (direct) {
    five[0] = event_count(MEMCG_LOW);
    five[1] = event_count(MEMCG_HIGH);
    five[2] = event_count(MEMCG_MAX);
    five[3] = event_count(MEMCG_OOM);
    five[4] = event_count(MEMCG_OOM_KILL);
  } else {
    probe_five(five, memcg->memory_events);
  }
  r->events_low = five[0];
  r->events_high = five[1];
  r->events_max = five[2];
  r->events_oom = five[3];
  r->events_oom_kill = five[4];
}

/*
 * Where each read is a call (6.1) both arrays are copied at once. Passes exclude each other: there
 * the iterator holds cgroup_mutex.
 */
#define HR_COPIED 64
static long copied_state[HR_COPIED];
static long copied_events[HR_COPIED];

/* One item by its index; HR_UNKNOWN where there is none. `direct` as in read(). */
static __always_inline hr_u64 item(struct memcg_vmstats* stats, hr_u32 index, const int direct) {
  if (index == HR_NO_INDEX) return HR_UNKNOWN;
  hr_u32 at = index & ~HR_IN_EVENTS;
  if (!direct && at >= HR_COPIED) return HR_UNKNOWN;
  long value;
  if (index & HR_IN_EVENTS)
    value = direct ? (long)stats->events[at] : copied_events[at];
  else
    value = direct ? stats->state[at] : copied_state[at];
  return value < 0 ? 0 : value;
}
#define stat_item(which) item(stats, config.index[which], direct)
#define shifted(value, by)                 \
  ({                                       \
    hr_u64 of_ = (value);                  \
    of_ == HR_UNKNOWN ? of_ : of_ << (by); \
  })
/* A sum of what the kernel keeps of four. */
#define known_or_zero(value)     \
  ({                             \
    hr_u64 of_ = (value);        \
    of_ == HR_UNKNOWN ? 0 : of_; \
  })

static __always_inline void copy_arrays(struct memcg_vmstats* stats) {
  bpf_probe_read_kernel(copied_state, sizeof(copied_state),
                        __builtin_preserve_access_index(&stats->state));
  bpf_probe_read_kernel(copied_events, sizeof(copied_events),
                        __builtin_preserve_access_index(&stats->events));
}

static __always_inline void fill_stat(struct hr_record* r, struct memcg_vmstats* stats,
                                      hr_u32 shift, const int direct) {
  r->inactive_anon = bytes(direct ? stats->state[0] : copied_state[0], shift);
  r->active_anon = bytes(direct ? stats->state[1] : copied_state[1], shift);
  r->inactive_file = bytes(direct ? stats->state[2] : copied_state[2], shift);
  r->active_file = bytes(direct ? stats->state[3] : copied_state[3], shift);
  r->unevictable = bytes(direct ? stats->state[4] : copied_state[4], shift);
  if (has(HR_KFUNC_ITEMS)) return; /* the rest by fill_by_kfunc() */
  r->anon = shifted(stat_item(HR_STAT_ANON), shift);
  r->file = shifted(stat_item(HR_STAT_FILE), shift);
  r->shmem = shifted(stat_item(HR_STAT_SHMEM), shift);
  r->file_mapped = shifted(stat_item(HR_STAT_FILE_MAPPED), shift);
  r->kernel_stack = shifted(stat_item(HR_STAT_KERNEL_STACK), 10);
  r->pagetables = shifted(stat_item(HR_STAT_PAGETABLES), shift);
  r->slab_reclaimable = stat_item(HR_STAT_SLAB_RECLAIMABLE);
  r->slab_unreclaimable = stat_item(HR_STAT_SLAB_UNRECLAIMABLE);
  r->zswap = stat_item(HR_STAT_ZSWAP);
  r->zswapped = shifted(stat_item(HR_STAT_ZSWAPPED), shift);
  r->swapcached = shifted(stat_item(HR_STAT_SWAPCACHED), shift);
  r->anon_thp = shifted(stat_item(HR_STAT_ANON_THP), shift);
  r->file_thp = shifted(stat_item(HR_STAT_FILE_THP), shift);
  r->shmem_thp = shifted(stat_item(HR_STAT_SHMEM_THP), shift);
}

static __always_inline void fill_reclaim(struct hr_record* r, struct memcg_vmstats* stats,
                                         const int direct) {
  r->refault_anon = stat_item(HR_STAT_REFAULT_ANON);
  r->refault_file = stat_item(HR_STAT_REFAULT_FILE);
  r->pgfault = stat_item(HR_STAT_PGFAULT);
  r->pgmajfault = stat_item(HR_STAT_PGMAJFAULT);
  r->pgscan = stat_item(HR_STAT_PGSCAN_KSWAPD) + stat_item(HR_STAT_PGSCAN_DIRECT) +
              known_or_zero(stat_item(HR_STAT_PGSCAN_KHUGEPAGED)) +
              known_or_zero(stat_item(HR_STAT_PGSCAN_PROACTIVE));
  r->pgsteal = !r->pgscan ? 0
                          : stat_item(HR_STAT_PGSTEAL_KSWAPD) + stat_item(HR_STAT_PGSTEAL_DIRECT) +
                                known_or_zero(stat_item(HR_STAT_PGSTEAL_KHUGEPAGED)) +
                                known_or_zero(stat_item(HR_STAT_PGSTEAL_PROACTIVE));
}

/*
 * Since 7.0, where the tables are hidden: config.index[] holds the running kernel's enumerators.
 * Values come in bytes (or counts); all ones for an item it does not keep, which is HR_UNKNOWN.
 */
static __always_inline hr_u64 read_kfunc_stat(struct mem_cgroup* memcg, hr_u32 index) {
  if (index == HR_NO_INDEX) return HR_UNKNOWN;
  if (index & HR_IN_EVENTS) return bpf_mem_cgroup_vm_events(memcg, index & ~HR_IN_EVENTS);
  return bpf_mem_cgroup_page_state(memcg, index);
}

static __always_inline hr_u32 fill_by_kfunc(struct hr_record* r, struct cgroup_subsys_state* self) {
  struct mem_cgroup* memcg = bpf_get_mem_cgroup(self);
  if (!memcg) return 0;
#define kfunc_stat(which) read_kfunc_stat(memcg, config.index[which])
  r->anon = kfunc_stat(HR_STAT_ANON);
  r->file = kfunc_stat(HR_STAT_FILE);
  r->shmem = kfunc_stat(HR_STAT_SHMEM);
  r->file_mapped = kfunc_stat(HR_STAT_FILE_MAPPED);
  r->kernel_stack = kfunc_stat(HR_STAT_KERNEL_STACK);
  r->pagetables = kfunc_stat(HR_STAT_PAGETABLES);
  r->slab_reclaimable = kfunc_stat(HR_STAT_SLAB_RECLAIMABLE);
  r->slab_unreclaimable = kfunc_stat(HR_STAT_SLAB_UNRECLAIMABLE);
  r->zswap = kfunc_stat(HR_STAT_ZSWAP);
  r->zswapped = kfunc_stat(HR_STAT_ZSWAPPED);
  r->swapcached = kfunc_stat(HR_STAT_SWAPCACHED);
  r->anon_thp = kfunc_stat(HR_STAT_ANON_THP);
  r->file_thp = kfunc_stat(HR_STAT_FILE_THP);
  r->shmem_thp = kfunc_stat(HR_STAT_SHMEM_THP);
  r->refault_anon = kfunc_stat(HR_STAT_REFAULT_ANON);
  r->refault_file = kfunc_stat(HR_STAT_REFAULT_FILE);
  r->pgfault = kfunc_stat(HR_STAT_PGFAULT);
  r->pgmajfault = kfunc_stat(HR_STAT_PGMAJFAULT);
  r->pgscan = kfunc_stat(HR_STAT_PGSCAN_KSWAPD) + kfunc_stat(HR_STAT_PGSCAN_DIRECT) +
              known_or_zero(kfunc_stat(HR_STAT_PGSCAN_KHUGEPAGED)) +
              known_or_zero(kfunc_stat(HR_STAT_PGSCAN_PROACTIVE));
  r->pgsteal = !r->pgscan
                   ? 0
                   : kfunc_stat(HR_STAT_PGSTEAL_KSWAPD) + kfunc_stat(HR_STAT_PGSTEAL_DIRECT) +
                         known_or_zero(kfunc_stat(HR_STAT_PGSTEAL_KHUGEPAGED)) +
                         known_or_zero(kfunc_stat(HR_STAT_PGSTEAL_PROACTIVE));
  bpf_put_mem_cgroup(memcg);
  return HR_RECLAIM;
}

static __always_inline int reclaim_is_known(void) {
  return config.index[HR_STAT_REFAULT_FILE] != HR_NO_INDEX &&
         config.index[HR_STAT_PGSCAN_KSWAPD] != HR_NO_INDEX &&
         config.index[HR_STAT_PGSCAN_DIRECT] != HR_NO_INDEX &&
         config.index[HR_STAT_PGSTEAL_KSWAPD] != HR_NO_INDEX &&
         config.index[HR_STAT_PGSTEAL_DIRECT] != HR_NO_INDEX;
}

/* The root keeps memory.stat alone: it has no memory.current, no limits, no memory.events. */
static __always_inline hr_u32 fill_memory(struct hr_record* r, struct cgroup_subsys_state* self,
                                          struct mem_cgroup* memcg, int is_root, const int direct) {
  hr_u32 shift = config.page_shift;
  hr_u32 valid = 0;
  if (!is_root && wanted(HR_MEMORY_USAGE)) {
    r->memory_usage = bytes(read(memcg->memory.usage.counter), shift);
    r->memory_peak = bytes(read(memcg->memory.watermark), shift);
    r->swap_usage = HR_UNKNOWN;
    if (bpf_core_field_exists(memcg->swap))
      r->swap_usage = bytes(read(memcg->swap.usage.counter), shift);
    valid |= HR_MEMORY_USAGE;
  }
  if (!is_root && wanted(HR_MEMORY_LIMITS)) {
    r->memory_min = limit_bytes(read(memcg->memory.min), shift);
    r->memory_low = limit_bytes(read(memcg->memory.low), shift);
    r->memory_high = limit_bytes(read(memcg->memory.high), shift);
    r->memory_max = limit_bytes(read(memcg->memory.max), shift);
    r->swap_max = HR_UNKNOWN;
    if (bpf_core_field_exists(memcg->swap)) r->swap_max = limit_bytes(read(memcg->swap.max), shift);
    valid |= HR_MEMORY_LIMITS;
  }
  if (!is_root && wanted(HR_MEMORY_EVENTS)) {
    fill_events(r, memcg, direct);
    valid |= HR_MEMORY_EVENTS;
  }
  if (wanted(HR_MEMORY_STAT | HR_RECLAIM) && bpf_core_field_exists(memcg->vmstats)) {
    struct memcg_vmstats* stats = read(memcg->vmstats);
    if (!stats) return valid;
    if (!direct) copy_arrays(stats);
    /* The group's bit says that the lists are right; what has no index is HR_UNKNOWN. */
    fill_stat(r, stats, shift, direct);
    valid |= HR_MEMORY_STAT & config.groups;
    if (has(HR_KFUNC_ITEMS)) return valid | fill_by_kfunc(r, self);
    if (!wanted(HR_RECLAIM) || !reclaim_is_known()) return valid;
    fill_reclaim(r, stats, direct);
    valid |= HR_RECLAIM;
  }
  return valid;
}

/* --- CPU, pressure, pids --------------------------------------------------------------------- */

/* part * whole / of, with part <= of: 2^-32 of the result is lost, no 128-bit product is needed. */
static __always_inline hr_u64 share(hr_u64 part, hr_u64 of, hr_u64 whole) {
  hr_u64 above = of >> 32;
  hr_u32 shift = 0;
  if (above >> 16) above >>= 16, shift += 16;
  if (above >> 8) above >>= 8, shift += 8;
  if (above >> 4) above >>= 4, shift += 4;
  if (above >> 2) above >>= 2, shift += 2;
  if (above >> 1) above >>= 1, shift += 1;
  if (above) shift += 1;
  hr_u64 fraction = ((part >> shift) << 32) / (of >> shift);
  return (whole >> 32) * fraction + (((whole & 0xffffffff) * fraction) >> 32);
}

/*
 * usage is exact; user and system are tick samples that cpu.stat scales to add up to usage, and
 * keeps from going back by what it last showed (cputime_adjust()). We do the same and leave its
 * memory alone.
 */
static __always_inline hr_u32 fill_cpu(struct hr_record* r, struct cgroup* cgrp) {
  hr_u64 usage = cgrp->bstat.cputime.sum_exec_runtime;
  hr_u64 user = cgrp->bstat.cputime.utime;
  hr_u64 system = cgrp->bstat.cputime.stime;
  hr_u64 shown_user = cgrp->prev_cputime.utime;
  hr_u64 shown_system = cgrp->prev_cputime.stime;
  if (shown_user + shown_system >= usage) {
    user = shown_user;
    system = shown_system;
  } else {
    if (!system)
      user = usage;
    else if (!user)
      system = usage;
    else
      system = share(system, user + system, usage);
    if (system < shown_system) system = shown_system;
    user = usage - system;
    if (user < shown_user) {
      user = shown_user;
      system = usage - user;
    }
  }
  r->cpu_usage_ns = usage;
  r->cpu_user_ns = user;
  r->cpu_system_ns = system;
  return HR_CPU;
}

static __always_inline hr_u32 fill_throttle(struct hr_record* r, struct task_group* tg,
                                            const int direct) {
  if (!bpf_core_field_exists(tg->cfs_bandwidth)) return 0;
  const int has_bursts = bpf_core_field_exists(tg->cfs_bandwidth.burst_time);
  r->nr_periods = (hr_u32)read(tg->cfs_bandwidth.nr_periods);
  /* The others are counted where a period ends. */
  if (!r->nr_periods) {
    r->nr_throttled = 0;
    r->throttled_ns = 0;
    r->nr_bursts = has_bursts ? 0 : HR_UNKNOWN;
    r->burst_ns = has_bursts ? 0 : HR_UNKNOWN;
    return HR_THROTTLE;
  }
  r->nr_throttled = (hr_u32)read(tg->cfs_bandwidth.nr_throttled);
  r->throttled_ns = read(tg->cfs_bandwidth.throttled_time);
  r->nr_bursts = has_bursts ? (hr_u32)read(tg->cfs_bandwidth.nr_burst) : HR_UNKNOWN;
  r->burst_ns = has_bursts ? read(tg->cfs_bandwidth.burst_time) : HR_UNKNOWN;
  return HR_THROTTLE;
}

/* As cpu.weight and cpu.max print them. */
static __always_inline hr_u32 fill_cpu_limits(struct hr_record* r, struct task_group* tg,
                                              const int direct) {
  if (!bpf_core_field_exists(tg->cfs_bandwidth.quota) || !bpf_core_field_exists(tg->shares))
    return 0;
  hr_u64 shares = read(tg->shares) >> 10;
  r->cpu_weight = (shares * 100 + 512) / 1024;
  hr_u64 quota = read(tg->cfs_bandwidth.quota);
  r->cpu_quota_us = quota == ~0ULL ? HR_NO_LIMIT : quota / 1000;
  r->cpu_period_us = read(tg->cfs_bandwidth.period) / 1000;
  return HR_CPU_LIMITS;
}

static __always_inline hr_u32 fill_bandwidth(struct hr_record* r, struct task_group* tg,
                                             const int direct) {
  hr_u32 valid = wanted(HR_THROTTLE) ? fill_throttle(r, tg, direct) : 0;
  return wanted(HR_CPU_LIMITS) ? valid | fill_cpu_limits(r, tg, direct) : valid;
}

#define HR_PID_MAX_LIMIT (4 * 1024 * 1024) /* of 64-bit kernels; one more is "max" */

static __always_inline hr_u32 fill_pids(struct hr_record* r, struct pids_cgroup* pids,
                                        const int direct) {
  if (!bpf_core_field_exists(pids->counter)) return 0;
  r->pids_current = read(pids->counter.counter);
  hr_u64 limit = read(pids->limit.counter);
  r->pids_max = limit > HR_PID_MAX_LIMIT ? HR_NO_LIMIT : limit;
  return HR_PIDS;
}

/* --- I/O ------------------------------------------------------------------------------------- */

static __always_inline void note_incomplete_io(void) {
  hr_u32 at = incomplete_io_count++;
  if (at < HR_INCOMPLETE_IO) incomplete_io[at & (HR_INCOMPLETE_IO - 1)] = visited_number;
}

static __always_inline int is_stacked(struct blkcg_gq* blkg) {
  if (!stacked_majors[0] || !bpf_core_field_exists(struct request_queue, disk)) return 0;
  hr_u32 major = (hr_u32)BPF_CORE_READ(blkg, q, disk, major);
  for (int i = 0; i < HR_STACKED_MAJORS; ++i)
    if (major && stacked_majors[i] == major) return 1;
  return 0;
}

struct io_sum {
  struct hlist_node* next;
  hr_u64 rbytes, wbytes, rios, wios;
};

/* For bpf_loop(): the verifier reads it once, and a loop as often as it may run. */
static long add_device(hr_u64 index, struct io_sum* sum) {
  struct hlist_node* node = sum->next;
  struct blkcg_gq* blkg = (void*)((__u64)node - bpf_core_field_offset(struct blkcg_gq, blkcg_node));
  struct blkg_iostat now = {};
  if (!is_stacked(blkg))
    bpf_probe_read_kernel(&now, sizeof(now), __builtin_preserve_access_index(&blkg->iostat.cur));
  sum->rbytes += now.bytes[0];
  sum->wbytes += now.bytes[1];
  sum->rios += now.ios[0];
  sum->wios += now.ios[1];
  struct hlist_node* next = 0;
  bpf_probe_read_kernel(&next, sizeof(next), __builtin_preserve_access_index(&node->next));
  sum->next = next;
  return !next;
}

/*
 * All devices together, as io.stat lists them, but those made of others (device mapper, md): what
 * passes through them is counted for the others as well.
 */
static __always_inline hr_u32 fill_io(struct hr_record* r, struct blkcg* blkcg, const int direct) {
  if (!bpf_core_field_exists(blkcg->blkg_list)) return 0;
  struct io_sum sum = {.next = read(blkcg->blkg_list.first)};
  if (sum.next) bpf_loop(io_devices, add_device, &sum, 0);
  if (sum.next) {
    note_incomplete_io();
    return 0;
  }
  r->io_rbytes = sum.rbytes;
  r->io_wbytes = sum.wbytes;
  r->io_rios = sum.rios;
  r->io_wios = sum.wios;
  return HR_IO;
}

#define state_of(name) bpf_core_enum_value(enum psi_states, name)
/* Full is part of some. */
#define fill_pair(pair, group, resource)                                                      \
  do {                                                                                        \
    hr_u64 some_ = (group)[state_of(PSI_##resource##_SOME)];                                  \
    (pair)[HR_PSI_SOME] = some_;                                                              \
    (pair)[HR_PSI_FULL] = !bpf_core_enum_value_exists(enum psi_states, PSI_##resource##_FULL) \
                              ? HR_UNKNOWN                                                    \
                          : some_ ? (group)[state_of(PSI_##resource##_FULL)]                  \
                                  : 0;                                                        \
  } while (0)
#define fill_totals(r, group)                          \
  do {                                                 \
    fill_pair((r)->psi_ns[HR_PSI_CPU], group, CPU);    \
    fill_pair((r)->psi_ns[HR_PSI_MEMORY], group, MEM); \
    fill_pair((r)->psi_ns[HR_PSI_IO], group, IO);      \
  } while (0)

/* As old as the group's last averaging, at most 2 s; the files collect at each read. */
static __always_inline hr_u32 fill_psi(struct hr_record* r, struct cgroup* cgrp) {
  struct psi_group* psi = cgrp->psi;
  if (!psi) return 0;
  if (bpf_core_field_exists(psi->enabled) && !psi->enabled) return 0;
  struct psi_group___rows* rows = (void*)psi;
  if (bpf_core_field_exists(psi->total))
    fill_totals(r, psi->total);
  else if (bpf_core_field_exists(rows->total))
    fill_totals(r, rows->total[0]);
  else
    return 0;
  return HR_PSI;
}

/* --- a cgroup -------------------------------------------------------------------------------- */

static __always_inline int populated(struct cgroup* cgrp) {
  int count = cgrp->nr_populated_domain_children + cgrp->nr_populated_threaded_children;
  struct cgroup_subsys_state___populated* self = (void*)&cgrp->self;
  if (bpf_core_field_exists(cgrp->nr_populated_csets))
    count += cgrp->nr_populated_csets;
  else if (bpf_core_field_exists(self->nr_populated_csets))
    count += self->nr_populated_csets;
  return count > 0;
}

/* The cgroup's state for one controller; null where it is not enabled, or not built in. */
#define css_of(cgrp, name)                                                \
  (bpf_core_enum_value_exists(enum cgroup_subsys_id, name)                \
       ? (cgrp)->subsys[bpf_core_enum_value(enum cgroup_subsys_id, name)] \
       : (void*)0)

/* What is kept behind a css. */
static __always_inline hr_u32 fill_controllers(struct hr_record* r,
                                               struct cgroup_subsys_state* self, int is_root,
                                               const int direct) {
  struct cgroup* cgrp = self->cgroup;
  struct cgroup_subsys_state* css;
  hr_u32 valid = 0;
  if (wanted(HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS | HR_MEMORY_EVENTS)) {
    css = css_of(cgrp, memory_cgrp_id);
    if (css) valid |= fill_memory(r, self, css_as(css, struct mem_cgroup), is_root, direct);
  }
  if (is_root) return valid;
  if (wanted(HR_THROTTLE | HR_CPU_LIMITS)) {
    css = css_of(cgrp, cpu_cgrp_id);
    if (css) valid |= fill_bandwidth(r, css_as(css, struct task_group), direct);
  }
  if (wanted(HR_PIDS)) {
    css = css_of(cgrp, pids_cgrp_id);
    if (css) valid |= fill_pids(r, css_as(css, struct pids_cgroup), direct);
  }
  if (wanted(HR_IO)) {
    css = css_of(cgrp, io_cgrp_id);
    if (css) valid |= fill_io(r, css_as(css, struct blkcg), direct);
  }
  return valid;
}

/* --- who sleeps ------------------------------------------------------------------------------ */

static __always_inline int memory_changed(const struct hr_record* r, struct mem_cgroup* memcg,
                                          const int direct) {
  hr_u32 shift = config.page_shift;
  if (wanted(HR_MEMORY_USAGE) && r->memory_usage != bytes(read(memcg->memory.usage.counter), shift))
    return 1;
  if (!wanted(HR_MEMORY_STAT) || !bpf_core_field_exists(memcg->vmstats)) return 0;
  struct memcg_vmstats* stats = read(memcg->vmstats);
  return stats && r->inactive_file != bytes(read(stats->state[2]), shift);
}

static __always_inline int pressure_changed(const struct hr_record* r, struct cgroup* cgrp) {
  struct psi_group* psi = cgrp->psi;
  if (!psi || (bpf_core_field_exists(psi->enabled) && !psi->enabled)) return r->valid & HR_PSI;
  struct psi_group___rows* rows = (void*)psi;
#define some_changed(group)                                                    \
  (r->psi_ns[HR_PSI_CPU][HR_PSI_SOME] != (group)[state_of(PSI_CPU_SOME)] ||    \
   r->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] != (group)[state_of(PSI_MEM_SOME)] || \
   r->psi_ns[HR_PSI_IO][HR_PSI_SOME] != (group)[state_of(PSI_IO_SOME)])
  if (bpf_core_field_exists(psi->total)) return some_changed(psi->total);
  return bpf_core_field_exists(rows->total) && some_changed(rows->total[0]);
}

/* Its usage or its working set: another cgroup's reclaim can change both. */
static __always_inline int ranking_inputs_changed(const struct hr_record* r, struct cgroup* cgrp,
                                                  const int direct) {
  if (wanted(HR_MEMORY_USAGE | HR_MEMORY_STAT)) {
    struct cgroup_subsys_state* css = css_of(cgrp, memory_cgrp_id);
    if (css ? memory_changed(r, css_as(css, struct mem_cgroup), direct)
            : r->valid & HR_MEMORY_USAGE)
      return 1;
  }
  return 0;
}

static __always_inline hr_u64 cpu_time(struct cgroup* cgrp) {
  return cgrp->bstat.cputime.sum_exec_runtime;
}

/*
 * A cgroup that took no CPU time neither charged a page nor woke. But it may have waited: tasks
 * that get no CPU take none, and the kernel adds a wait to psi_group.total up to 2 s after it
 * ended.
 */
static __always_inline int is_idle(const struct hr_change_stamp* stamp, const struct hr_record* r,
                                   struct cgroup* cgrp) {
  return wanted(HR_CPU) && stamp->cpu_ns == cpu_time(cgrp) && stamp->populated == populated(cgrp) &&
         !(wanted(HR_PSI) && pressure_changed(r, cgrp));
}

static __always_inline void update_change_stamp(struct hr_change_stamp* stamp,
                                                struct hr_update_bits* bits, struct cgroup* cgrp) {
  if (stamp->serial != cgrp->self.serial_nr) {
    stamp->serial = cgrp->self.serial_nr;
    bits->numbered &= ~bit_of(visited_number);
    pass.reassigned++;
  }
  stamp->cpu_ns = cpu_time(cgrp);
  stamp->populated = populated(cgrp);
  stamp->pass = pass.number;
}

/* --- the pass -------------------------------------------------------------------------------- */

/* Every field from `first` to `last`. */
#define invalidate_fields(r, first, last) \
  __builtin_memset(&(r)->first, 0xff, (char*)(&(r)->last + 1) - (char*)&(r)->first)

/* What an earlier pass left there in these groups is not this cgroup's. */
static __always_inline void invalidate(struct hr_record* r, hr_u32 groups) {
  if (groups & HR_MEMORY_USAGE) invalidate_fields(r, memory_usage, swap_usage);
  if (groups & HR_MEMORY_STAT) {
    invalidate_fields(r, anon, shmem_thp);
    r->swapcached = HR_UNKNOWN;
  }
  if (groups & HR_RECLAIM) invalidate_fields(r, refault_anon, pgmajfault);
  if (groups & HR_MEMORY_LIMITS) invalidate_fields(r, memory_min, swap_max);
  if (groups & HR_MEMORY_EVENTS) invalidate_fields(r, events_low, events_oom_kill);
  if (groups & HR_CPU) invalidate_fields(r, cpu_usage_ns, cpu_system_ns);
  if (groups & HR_THROTTLE) invalidate_fields(r, nr_periods, burst_ns);
  if (groups & HR_CPU_LIMITS) invalidate_fields(r, cpu_weight, cpu_period_us);
  if (groups & HR_PSI) invalidate_fields(r, psi_ns, psi_ns);
  if (groups & HR_PIDS) invalidate_fields(r, pids_current, pids_max);
  if (groups & HR_IO) invalidate_fields(r, io_rbytes, io_wios);
}

static __always_inline void forget_old_seconds(struct hr_update_bits* bits) {
  for (int i = 0; i <= HR_ACTIVE_SECONDS; ++i)
    if (pass.forget & (1U << i)) bits->active[i] = 0;
}

/* False: there is no room for its record. */
static __always_inline int visit(struct cgroup_subsys_state* self, hr_u32 index) {
  struct cgroup* cgrp = self->cgroup;
  struct hr_change_stamp* stamp = bpf_map_lookup_elem(&change_stamps, &index);
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  struct hr_update_bits* bits = bits_of(index);
  if (!r || !stamp || !bits) return 0;
  visited_number = index;
  pass.visited++;

  const int direct = has(HR_KFUNC_RDONLY_CAST);
  struct cgroup_subsys_state* parent = cgrp->self.parent;
  int is_root = !parent;
  /* The root's CPU time is not kept in its cgroup: it never seems to move. */
  int idle = pass.mask && !is_root && stamp->serial == cgrp->self.serial_nr &&
             is_idle(stamp, r, cgrp) &&
             !(pass.compare_usage &&
               (direct ? ranking_inputs_changed(r, cgrp, 1) : ranking_inputs_changed(r, cgrp, 0)));
  if (!idle) bits->active[pass.second & HR_ACTIVE_SECONDS] |= bit_of(index);
  if (idle && (index & pass.mask) != pass.share) {
    pass.idle_skipped++;
    return 1;
  }
  /* Before the record: what happens from here on the next pass finds. */
  update_change_stamp(stamp, bits, cgrp);

  r->id = cgrp->kn->id;
  r->populated = stamp->populated;
  r->parent_id = 0;
  if (!is_root) r->parent_id = parent->cgroup->kn->id;

  hr_u32 valid =
      direct ? fill_controllers(r, self, is_root, 1) : fill_controllers(r, self, is_root, 0);
  /* The root's CPU time and pressure are the machine's, kept elsewhere (kcpustat, psi_system). */
  if (!is_root && wanted(HR_CPU)) valid |= fill_cpu(r, cgrp);
  if (!is_root && wanted(HR_PSI)) valid |= fill_psi(r, cgrp);
  r->valid = valid;
  if (valid != (1u << HR_GROUPS) - 1) invalidate(r, ~valid);
  return 1;
}

/* The next cgroup of a walk through the tree. */
static __always_inline void visit_in_order(struct cgroup_subsys_state* self) {
  hr_u32 index = pass.next;
  struct hr_update_bits* bits = bits_of(index);
  if (bits && (index & 63) == 0) forget_old_seconds(bits);
  if (visit(self, index))
    pass.next = index + 1;
  else
    pass.lost++;
}

/* --- a pass with cgroup_mutex: the iterator's, for kernels before 6.10 --------------------------
 */

SEC("iter.s/cgroup")
int sweep(struct bpf_iter__cgroup* ctx) {
  struct cgroup* cgrp = ctx->cgroup;
  if (!cgrp) return 0; /* the call after the last one */
  if (pass.next == 0) flush(cgrp);
  visit_in_order(&cgrp->self);
  return 0;
}

/* --- a pass without it, since 6.10 -------------------------------------------------------------
 */

/*
 * The same walk by a program that user space calls: the RCU read lock is all it holds, and nothing
 * is allocated. An attach holds cgroup_mutex for an RCU grace period, a mkdir while it allocates;
 * neither is waited for, and neither waits for a pass. A call visits so many cgroups at most,
 * because it keeps its CPU from other tasks; the next one goes on behind the last cgroup of the one
 * before, which it finds by its serial number: the kernel keeps siblings in the order they were
 * made. A cgroup that is made in between, further in front, is found by the next pass.
 */
hr_u64 walk_top;         /* id of the cgroup whose tree is walked; user space sets it once */
hr_u64 walk_last_serial; /* of the last cgroup visited */
hr_u32 walk_found;       /* this call has reached that cgroup; user space sets 1 to begin a pass */
hr_u32 walk_left;        /* cgroups that this call may still visit; user space sets it */
hr_u32 walk_top_found;   /* results of a call: 0, this program may not know that cgroup; */
hr_u32 walk_more;        /* and 1, call again */

/* Not inlined, and not static: the verifier reads it once, whatever calls it in a loop. */
__attribute__((noinline)) int visit_next(struct cgroup_subsys_state* css __arg_trusted) {
  if (!walk_found) {
    walk_found = css->serial_nr == walk_last_serial;
    return 0;
  }
  if (!walk_left) return 1;
  walk_left--;
  walk_last_serial = css->serial_nr;
  if (css->flags & CSS_ONLINE) visit_in_order(css); /* a dead one may still have its place */
  return 0;
}

/* The root of the tree, or of the mount: a daemon in a namespace of its own gets no other by id. */
static __always_inline struct cgroup* get_top(void) {
  struct cgroup* top = bpf_cgroup_from_id(walk_top);
  if (top) return top;
  struct task_struct* task = bpf_get_current_task_btf();
  struct cgroup* own = task->cgroups->dfl_cgrp;
  if (!own) return 0;
  top = bpf_cgroup_ancestor(own, 0);
  if (!top) return 0;
  if (top->kn->id == walk_top) return top;
  bpf_cgroup_release(top);
  return 0;
}

SEC("syscall")
int sweep_call(void* ctx) {
  int more = 0;
  bpf_rcu_read_lock();
  struct cgroup* top = get_top();
  walk_top_found = top != 0;
  if (!top) {
    bpf_rcu_read_unlock();
    return 0;
  }
  struct bpf_iter_css tree;
  struct cgroup_subsys_state* css;
  bpf_iter_css_new(&tree, &top->self, DESCENDANTS_PRE);
  while (!more && (css = bpf_iter_css_next(&tree)))
    more = visit_next(css);
  bpf_iter_css_destroy(&tree);
  bpf_rcu_read_unlock();
  bpf_cgroup_release(top);
  walk_more = more;
  return 0;
}

/* --- a pass over the updated cgroups, where the tree is as in the pass before ------------------
 */

hr_u64 turn_bits;    /* of 64 records, those whose turn it is; user space sets it */
hr_u32 updated_from; /* where the call begins, in 64 records; user space sets 0 to begin a pass */
hr_u32 unnumbered;   /* result of sweep_number: how many still do not hold their numbers */

/* Of the records from at * 64 on, those that there are. */
static __always_inline hr_u64 existing_bits(hr_u32 at) {
  hr_u32 left = pass.next - at * 64;
  return left >= 64 ? ~0ULL : (1ULL << (left & 63)) - 1;
}

/* Not found: it was removed, and the next pass walks through the tree. */
__attribute__((noinline)) int visit_numbered(hr_u32 index) {
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  if (!r) return 0;
  if (walk_left) walk_left--;
  bpf_rcu_read_lock();
  struct cgroup* cgrp = index ? bpf_cgroup_from_id(r->id) : get_top();
  if (cgrp) {
    visit(&cgrp->self, index);
    bpf_cgroup_release(cgrp);
  }
  bpf_rcu_read_unlock();
  return 0;
}

static long visit_updated_of_64(hr_u64 unused, void* context) {
  hr_u32 at = updated_from;
  struct hr_update_bits* bits = bpf_map_lookup_elem(&update_bits, &at);
  if (!bits || at * 64 >= pass.next || !walk_left) return 1;
  updated_from = at + 1;
  forget_old_seconds(bits);
  hr_u64 due = turn_bits | (at == 0); /* the root is always visited */
  for (int i = 0; i <= HR_ACTIVE_SECONDS; ++i)
    due |= bits->active[i];
  due |= __sync_lock_test_and_set(&bits->updated, 0);
  due &= existing_bits(at);
  for (int i = 0; i < 64; ++i)
    if (due & (1ULL << i)) visit_numbered(at * 64 + i);
  return 0;
}

SEC("syscall")
int sweep_updated(void* ctx) {
  bpf_loop(1 << 20, visit_updated_of_64, 0, 0);
  walk_more = updated_from * 64 < pass.next;
  return 0;
}

/* So that mark_updated() finds it. */
__attribute__((noinline)) int number(hr_u32 index) {
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  struct hr_update_bits* bits = bits_of(index);
  if (!r || !bits) return 0;
  if (!walk_left) {
    unnumbered++;
    return 0;
  }
  walk_left--;
  struct cgroup* cgrp = bpf_cgroup_from_id(r->id);
  hr_u32* kept = cgrp ? bpf_cgrp_storage_get(&numbers, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
  if (kept) {
    *kept = index;
    bits->numbered |= bit_of(index);
  } else {
    unnumbered++;
  }
  if (cgrp) bpf_cgroup_release(cgrp);
  return 0;
}

static long number_64(hr_u64 unused, void* context) {
  hr_u32 at = updated_from;
  struct hr_update_bits* bits = bpf_map_lookup_elem(&update_bits, &at);
  if (!bits || at * 64 >= pass.next) return 1;
  updated_from = at + 1;
  if (at == 0) bits->numbered |= 1; /* the root needs none */
  hr_u64 due = ~bits->numbered & existing_bits(at);
  for (int i = 0; i < 64; ++i)
    if (due & (1ULL << i)) number(at * 64 + i);
  return 0;
}

SEC("syscall")
int sweep_number(void* ctx) {
  unnumbered = 0;
  bpf_loop(1 << 20, number_64, 0, 0);
  return 0;
}

/*
 * What brings the counters up to date for it: the kernel lets no program that is called flush. The
 * iterator over tasks runs this for one task, the caller. It returns 1, "the same object again"
 * (bpf_iter_run_prog()): each read of one open iterator runs it, and the kernel allocates its
 * buffer of 32 KiB once, not when memory is short.
 */
SEC("iter.s/task")
int sweep_flush(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;           /* the call after the last one */
  asm volatile("" : "+r"(task)); /* read again, it could be null to the verifier */
  struct cgroup* top = bpf_cgroup_from_id(walk_top);
  if (!top) {
    bpf_rcu_read_lock();
    struct cgroup* own = task->cgroups->dfl_cgrp;
    if (own) top = bpf_cgroup_ancestor(own, 0);
    bpf_rcu_read_unlock();
  }
  if (!top) return 1;
  flush(top);
  bpf_cgroup_release(top);
  return 1;
}
