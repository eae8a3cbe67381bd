/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory controller's part of a record. */
#pragma once

#include "sweep.bpf.h"

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

static __always_inline int memory_changed(const struct hr_record* r, struct mem_cgroup* memcg,
                                          const int direct) {
  hr_u32 shift = config.page_shift;
  if (wanted(HR_MEMORY_USAGE) && r->memory_usage != bytes(read(memcg->memory.usage.counter), shift))
    return 1;
  if (!wanted(HR_MEMORY_STAT) || !bpf_core_field_exists(memcg->vmstats)) return 0;
  struct memcg_vmstats* stats = read(memcg->vmstats);
  return stats && r->inactive_file != bytes(read(stats->state[2]), shift);
}
