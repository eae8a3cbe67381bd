/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire between the BPF programs and user space: fixed width, explicit padding, no bool, no
 * pointers. One record says what one cgroup is at one instant; whichever source filled it (BPF or
 * cgroupfs files), it has this shape and these units.
 *
 * A group of fields is meaningful only if its bit is set in `valid`; every other field holds
 * HR_UNKNOWN (all ones). Unknown is a value, never zero.
 */
#pragma once

#ifndef __BPF__
#include <stdint.h>
typedef uint64_t hr_u64;
typedef uint32_t hr_u32;
#else
typedef unsigned long long hr_u64;
typedef unsigned int hr_u32;
#endif

#define HR_UNKNOWN (~0ULL)

/* Groups of fields: each comes from one source as a whole, chosen once by probing. */
enum hr_group {
  HR_MEMORY_USAGE = 1 << 0,  /* memory_usage, swap_usage */
  HR_MEMORY_STAT = 1 << 1,   /* inactive_file and its neighbours of memory.stat */
  HR_MEMORY_LIMITS = 1 << 2, /* memory_min … memory_max; swap_max */
  HR_MEMORY_EVENTS = 1 << 3, /* events_* of memory.events (hierarchical) */
  HR_CPU = 1 << 4,           /* cpu_usage_ns, cpu_user_ns, cpu_system_ns */
  HR_THROTTLE = 1 << 5,      /* nr_periods, nr_throttled, throttled_ns */
  HR_PSI = 1 << 6,           /* psi_ns */
  HR_PIDS = 1 << 7,          /* pids_current */
};
#define HR_GROUPS 8

enum hr_psi_resource { HR_PSI_CPU, HR_PSI_MEMORY, HR_PSI_IO, HR_PSI_RESOURCES };
enum hr_psi_kind { HR_PSI_SOME, HR_PSI_FULL, HR_PSI_KINDS };

/* A limit of "max" is HR_NO_LIMIT: known, and infinite. */
#define HR_NO_LIMIT (~0ULL - 1)

struct hr_record {
  hr_u64 id;        /* cgroup id */
  hr_u64 parent_id; /* 0 for the root */
  hr_u32 valid;     /* hr_group bits */
  hr_u32 populated; /* 1: a live process in it or below it; 0: none (cgroup.events) */

  hr_u64 memory_usage; /* bytes; memory.current */
  hr_u64 swap_usage;   /* bytes; memory.swap.current */

  hr_u64 anon; /* bytes; these eight are of memory.stat, same names */
  hr_u64 file;
  hr_u64 inactive_anon;
  hr_u64 active_anon;
  hr_u64 inactive_file; /* working set = memory_usage - inactive_file, floored at 0 */
  hr_u64 active_file;
  hr_u64 unevictable;
  hr_u64 shmem;

  hr_u64 memory_min; /* bytes or HR_NO_LIMIT */
  hr_u64 memory_low;
  hr_u64 memory_high;
  hr_u64 memory_max;
  hr_u64 swap_max;

  hr_u64 events_low; /* counts; memory.events */
  hr_u64 events_high;
  hr_u64 events_max;
  hr_u64 events_oom;
  hr_u64 events_oom_kill;

  hr_u64 cpu_usage_ns; /* cpu.stat, in nanoseconds */
  hr_u64 cpu_user_ns;
  hr_u64 cpu_system_ns;

  hr_u64 nr_periods; /* cpu.stat of a cgroup with a quota */
  hr_u64 nr_throttled;
  hr_u64 throttled_ns;

  hr_u64 psi_ns[HR_PSI_RESOURCES][HR_PSI_KINDS]; /* *.pressure total, in nanoseconds */

  hr_u64 pids_current; /* tasks; pids.current */
};

/* What user space tells the sweep before it is loaded: the verifier then sees constants. */
struct hr_sweep_config {
  hr_u32 groups;     /* hr_group bits to read */
  hr_u32 kfuncs;     /* hr_kfunc bits: what this kernel has */
  hr_u32 page_shift; /* log2 of the page size */
  hr_u32 anon_index; /* into memcg_vmstats.state[]; HR_NO_INDEX: not known */
  hr_u32 file_index;
  hr_u32 shmem_index;
};
#define HR_NO_INDEX (~0U)
/*
 * Asked of the kernel's BTF by user space: 6.1 refuses a program that tests a kfunc's address
 * ("isn't KIND_VAR") just where the kfunc exists.
 */
enum hr_kfunc {
  HR_KFUNC_RDONLY_CAST = 1 << 0,  /* bpf_rdonly_cast, since 6.2 */
  HR_KFUNC_CGROUP_FLUSH = 1 << 1, /* cgroup_rstat_flush, 6.1 to 6.15 */
  HR_KFUNC_CSS_FLUSH = 1 << 2,    /* css_rstat_flush, since 6.16 */
  HR_KFUNC_MEMCG = 1 << 3,        /* bpf_get_mem_cgroup and its kin, since 7.0 */
};

/* How the last pass went; `next` and `lost` are reset by user space. */
struct hr_sweep_pass {
  hr_u32 next;    /* records written */
  hr_u32 lost;    /* cgroups that did not fit in the map */
  hr_u32 flushed; /* groups the pass itself brought up to date before reading */
  hr_u32 reserved;
};

/* Asked of stat_index.bpf.c: the entries of the kernel's mem_cgroup_stats_index[]. */
#define HR_STAT_ITEMS 8
struct hr_stat_index {
  hr_u32 items[HR_STAT_ITEMS];   /* in: node_stat_item or memcg_stat_item values */
  hr_u32 entries[HR_STAT_ITEMS]; /* out: one byte each; HR_NO_INDEX: could not be read */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct hr_record) == 36 * 8, "both sides must agree on hr_record");
_Static_assert(sizeof(struct hr_sweep_config) == 6 * 4, "and on hr_sweep_config");
_Static_assert(sizeof(struct hr_sweep_pass) == 4 * 4, "and on hr_sweep_pass");
_Static_assert(sizeof(struct hr_stat_index) == 16 * 4, "and on hr_stat_index");
#else
static_assert(sizeof(struct hr_record) == 36 * 8, "both sides must agree on hr_record");
#endif
