/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweep: the state of every cgroup, in one pre-order pass of the cgroup iterator, one hr_record
 * each, written to an array that user space maps.
 *
 * The records go to a map because the iterator's own output ends at 32 KiB and cannot resume
 * (6.1 to 7.2: EOPNOTSUPP on the second read). The pass holds cgroup_mutex, so ids and parents are
 * of one instant; counters are not, each is as of its load.
 *
 * Loads are plain BTF loads, a few instructions each, where the verifier knows the type. A
 * controller's state is reached from its css, and that step is a cast: bpf_rdonly_cast() makes it
 * free since 6.2; on 6.1 the fields behind it are read by bpf_probe_read_kernel(), ~10 ns each.
 */
#include "kernel.bpf.h"

#include <headroom/abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct hr_sweep_config config;
struct hr_sweep_pass pass;

/* running number → record; user space sets max_entries before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_record);
} records SEC(".maps");

/* Weak: a call to a missing one is poisoned, and config.kfuncs keeps it from being reached. */
extern void* bpf_rdonly_cast(void* obj, __u32 btf_id) __ksym __weak;
/* Flushes every subsystem's rstat of the tree below. */
extern void cgroup_rstat_flush(struct cgroup* cgrp) __ksym __weak;
/* Its successor flushes one subsystem; the cgroup's own css stands for CPU time. */
extern void css_rstat_flush(struct cgroup_subsys_state* css) __ksym __weak;
extern struct mem_cgroup* bpf_get_mem_cgroup(struct cgroup_subsys_state* css) __ksym __weak;
extern void bpf_put_mem_cgroup(struct mem_cgroup* memcg) __ksym __weak;
extern unsigned long bpf_mem_cgroup_page_state(struct mem_cgroup* memcg, int idx) __ksym __weak;
extern void bpf_mem_cgroup_flush_stats(struct mem_cgroup* memcg) __ksym __weak;
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
  bpf_mem_cgroup_flush_stats(memcg);
  bpf_put_mem_cgroup(memcg);
  pass.flushed |= HR_MEMORY_STAT;
}

static __always_inline void flush(struct cgroup* cgrp) {
  pass.flushed = 0;
  if (has(HR_KFUNC_CGROUP_FLUSH)) {
    if (!wanted(HR_CPU | HR_MEMORY_STAT)) return;
    cgroup_rstat_flush(cgrp);
    pass.flushed = HR_CPU | HR_MEMORY_STAT;
    return;
  }
  if (has(HR_KFUNC_CSS_FLUSH) && wanted(HR_CPU)) {
    css_rstat_flush(&cgrp->self);
    pass.flushed = HR_CPU;
  }
  if (wanted(HR_MEMORY_STAT)) flush_memory(cgrp);
}

/* --- memory ---------------------------------------------------------------------------------- */

#define item_of(name) bpf_core_enum_value(enum node_stat_item, name)
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

static __always_inline void fill_lists(struct hr_record* r, struct memcg_vmstats* stats,
                                       hr_u32 shift, const int direct) {
  long five[5] = {};
  if (direct) {
    five[0] = stats->state[0];
    five[1] = stats->state[1];
    five[2] = stats->state[2];
    five[3] = stats->state[3];
    five[4] = stats->state[4];
  } else {
    probe_five(five, stats->state);
  }
  r->inactive_anon = bytes(five[0], shift);
  r->active_anon = bytes(five[1], shift);
  r->inactive_file = bytes(five[2], shift);
  r->active_file = bytes(five[3], shift);
  r->unevictable = bytes(five[4], shift);
}

static __always_inline void fill_anon_file_shmem(struct hr_record* r, struct cgroup* cgrp,
                                                 struct memcg_vmstats* stats, hr_u32 shift,
                                                 const int direct) {
  /* Copied out first: inside read() the access to config would become a relocation as well. */
  hr_u32 anon = config.anon_index;
  hr_u32 file = config.file_index;
  hr_u32 shmem = config.shmem_index;
  if (anon != HR_NO_INDEX) {
    r->anon = bytes(read(stats->state[anon]), shift);
    r->file = bytes(read(stats->state[file]), shift);
    r->shmem = bytes(read(stats->state[shmem]), shift);
    return;
  }
  if (!has(HR_KFUNC_MEMCG)) return;
  struct mem_cgroup* held = bpf_get_mem_cgroup(&cgrp->self);
  if (!held) return;
  /* All ones for an item it does not keep, which is HR_UNKNOWN. */
  r->anon = bpf_mem_cgroup_page_state(held, item_of(NR_ANON_MAPPED));
  r->file = bpf_mem_cgroup_page_state(held, item_of(NR_FILE_PAGES));
  r->shmem = bpf_mem_cgroup_page_state(held, item_of(NR_SHMEM));
  bpf_put_mem_cgroup(held);
}

/* The root keeps memory.stat alone: it has no memory.current, no limits, no memory.events. */
static __always_inline hr_u32 fill_memory(struct hr_record* r, struct cgroup* cgrp,
                                          struct mem_cgroup* memcg, int is_root, const int direct) {
  hr_u32 shift = config.page_shift;
  hr_u32 valid = 0;
  if (!is_root && wanted(HR_MEMORY_USAGE)) {
    r->memory_usage = bytes(read(memcg->memory.usage.counter), shift);
    if (bpf_core_field_exists(memcg->swap))
      r->swap_usage = bytes(read(memcg->swap.usage.counter), shift);
    valid |= HR_MEMORY_USAGE;
  }
  if (!is_root && wanted(HR_MEMORY_LIMITS)) {
    r->memory_min = limit_bytes(read(memcg->memory.min), shift);
    r->memory_low = limit_bytes(read(memcg->memory.low), shift);
    r->memory_high = limit_bytes(read(memcg->memory.high), shift);
    r->memory_max = limit_bytes(read(memcg->memory.max), shift);
    if (bpf_core_field_exists(memcg->swap)) r->swap_max = limit_bytes(read(memcg->swap.max), shift);
    valid |= HR_MEMORY_LIMITS;
  }
  if (!is_root && wanted(HR_MEMORY_EVENTS)) {
    fill_events(r, memcg, direct);
    valid |= HR_MEMORY_EVENTS;
  }
  if (wanted(HR_MEMORY_STAT) && bpf_core_field_exists(memcg->vmstats)) {
    struct memcg_vmstats* stats = read(memcg->vmstats);
    if (!stats) return valid;
    /* The group's bit says that these are right; anon, file and shmem may be HR_UNKNOWN. */
    fill_lists(r, stats, shift, direct);
    fill_anon_file_shmem(r, cgrp, stats, shift, direct);
    valid |= HR_MEMORY_STAT;
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
  r->nr_periods = (hr_u32)read(tg->cfs_bandwidth.nr_periods);
  r->nr_throttled = (hr_u32)read(tg->cfs_bandwidth.nr_throttled);
  r->throttled_ns = read(tg->cfs_bandwidth.throttled_time);
  return HR_THROTTLE;
}

static __always_inline hr_u32 fill_pids(struct hr_record* r, struct pids_cgroup* pids,
                                        const int direct) {
  if (!bpf_core_field_exists(pids->counter)) return 0;
  r->pids_current = read(pids->counter.counter);
  return HR_PIDS;
}

#define state_of(name) bpf_core_enum_value(enum psi_states, name)
#define fill_totals(r, group)                                                  \
  do {                                                                         \
    (r)->psi_ns[HR_PSI_CPU][HR_PSI_SOME] = (group)[state_of(PSI_CPU_SOME)];    \
    if (bpf_core_enum_value_exists(enum psi_states, PSI_CPU_FULL))             \
      (r)->psi_ns[HR_PSI_CPU][HR_PSI_FULL] = (group)[state_of(PSI_CPU_FULL)];  \
    (r)->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] = (group)[state_of(PSI_MEM_SOME)]; \
    (r)->psi_ns[HR_PSI_MEMORY][HR_PSI_FULL] = (group)[state_of(PSI_MEM_FULL)]; \
    (r)->psi_ns[HR_PSI_IO][HR_PSI_SOME] = (group)[state_of(PSI_IO_SOME)];      \
    (r)->psi_ns[HR_PSI_IO][HR_PSI_FULL] = (group)[state_of(PSI_IO_FULL)];      \
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

/* --- the pass -------------------------------------------------------------------------------- */

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
static __always_inline hr_u32 fill_controllers(struct hr_record* r, struct cgroup* cgrp,
                                               int is_root, const int direct) {
  hr_u32 valid = 0;
  struct cgroup_subsys_state* css;
  if (wanted(HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS | HR_MEMORY_EVENTS)) {
    css = css_of(cgrp, memory_cgrp_id);
    if (css) valid |= fill_memory(r, cgrp, css_as(css, struct mem_cgroup), is_root, direct);
  }
  if (is_root) return valid;
  if (wanted(HR_THROTTLE)) {
    css = css_of(cgrp, cpu_cgrp_id);
    if (css) valid |= fill_throttle(r, css_as(css, struct task_group), direct);
  }
  if (wanted(HR_PIDS)) {
    css = css_of(cgrp, pids_cgrp_id);
    if (css) valid |= fill_pids(r, css_as(css, struct pids_cgroup), direct);
  }
  return valid;
}

SEC("iter.s/cgroup")
int sweep(struct bpf_iter__cgroup* ctx) {
  struct cgroup* cgrp = ctx->cgroup;
  if (!cgrp) return 0; /* the call after the last one */

  hr_u32 index = pass.next;
  if (index == 0) flush(cgrp);
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  if (!r) {
    pass.lost++;
    return 0;
  }
  pass.next = index + 1;

  __builtin_memset(r, 0xff, sizeof(*r)); /* HR_UNKNOWN, each field */
  struct cgroup_subsys_state* parent = cgrp->self.parent;
  int is_root = !parent;
  r->id = cgrp->kn->id;
  r->parent_id = 0;
  if (!is_root) r->parent_id = parent->cgroup->kn->id;
  r->populated = populated(cgrp);

  hr_u32 valid = has(HR_KFUNC_RDONLY_CAST) ? fill_controllers(r, cgrp, is_root, 1)
                                           : fill_controllers(r, cgrp, is_root, 0);
  /* The root's CPU time and pressure are the machine's, kept elsewhere (kcpustat, psi_system). */
  if (!is_root && wanted(HR_CPU)) valid |= fill_cpu(r, cgrp);
  if (!is_root && wanted(HR_PSI)) valid |= fill_psi(r, cgrp);
  r->valid = valid;
  return 0;
}
