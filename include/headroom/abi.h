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
  hr_u32 groups;      /* hr_group bits to read */
  hr_u32 page_shift;  /* log2 of the page size */
  hr_u32 anon_index;  /* into memcg_vmstats.state[]; HR_NO_INDEX: not known beforehand */
  hr_u32 file_index;
  hr_u32 shmem_index;
  hr_u32 index_table; /* 1: state[] is compacted, ask the kernel for the indices */
};
#define HR_NO_INDEX (~0U)

/* How the last pass went; written by the sweep, `next` and `lost` reset by user space. */
struct hr_sweep_pass {
  hr_u32 next;         /* records written */
  hr_u32 lost;         /* cgroups that did not fit in the map */
  hr_u32 flushed;      /* groups the pass itself brought up to date before reading */
  hr_u32 index_source; /* hr_index_source: where anon, file and shmem come from */
  hr_u32 anon_index;   /* the indices read from the kernel's own table */
  hr_u32 file_index;
  hr_u32 shmem_index;
  hr_u32 reserved;
};
enum hr_index_source {
  HR_INDEX_UNKNOWN, /* anon, file and shmem stay HR_UNKNOWN */
  HR_INDEX_BTF,     /* state[] is not compacted: the enum's values */
  HR_INDEX_TABLE,   /* mem_cgroup_stats_index[], through kallsyms */
  HR_INDEX_KFUNC,   /* bpf_mem_cgroup_page_state() */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct hr_record) == 36 * 8, "both sides must agree on hr_record");
_Static_assert(sizeof(struct hr_sweep_config) == 6 * 4, "and on hr_sweep_config");
_Static_assert(sizeof(struct hr_sweep_pass) == 8 * 4, "and on hr_sweep_pass");
#else
static_assert(sizeof(struct hr_record) == 36 * 8, "both sides must agree on hr_record");
#endif
