/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The binary interface between the BPF programs and user space: fixed width, explicit padding, no
 * bool, no pointers. One record describes one cgroup at one instant. It has the same layout and the
 * same units from either source (BPF or cgroupfs files).
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

/* Groups of fields: each group comes from one source, which is chosen once by probing. */
enum hr_group {
  HR_MEMORY_USAGE = 1 << 0,  /* memory_usage, memory_peak, swap_usage */
  HR_MEMORY_STAT = 1 << 1,   /* inactive_file and its neighbours of memory.stat */
  HR_MEMORY_LIMITS = 1 << 2, /* memory_min … memory_max; swap_max */
  HR_MEMORY_EVENTS = 1 << 3, /* events_* of memory.events (hierarchical) */
  HR_CPU = 1 << 4,           /* cpu_usage_ns, cpu_user_ns, cpu_system_ns */
  HR_THROTTLE = 1 << 5,      /* nr_periods … burst_ns */
  HR_PSI = 1 << 6,           /* psi_ns */
  HR_PIDS = 1 << 7,          /* pids_current, pids_max */
  HR_RECLAIM = 1 << 8,       /* refaults, scans, steals and faults of memory.stat */
  HR_CPU_LIMITS = 1 << 9,    /* cpu_weight, cpu_quota_us, cpu_period_us */
  HR_IO = 1 << 10,           /* io_* of io.stat, all devices together */
};
#define HR_GROUPS 11

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
  hr_u64 memory_peak;  /* bytes; memory.peak, since 5.19 */
  hr_u64 swap_usage;   /* bytes; memory.swap.current */

  hr_u64 anon; /* bytes; these are of memory.stat, same names */
  hr_u64 file;
  hr_u64 inactive_anon;
  hr_u64 active_anon;
  hr_u64 inactive_file; /* working set = memory_usage - inactive_file, floored at 0 */
  hr_u64 active_file;
  hr_u64 unevictable;
  hr_u64 shmem;
  hr_u64 file_mapped;
  hr_u64 kernel_stack;
  hr_u64 pagetables;
  hr_u64 slab_reclaimable;
  hr_u64 slab_unreclaimable;
  hr_u64 zswap;    /* what the compressed pages take */
  hr_u64 zswapped; /* what they held */
  hr_u64 anon_thp; /* of anon, file and shmem: in transparent huge pages */
  hr_u64 file_thp;
  hr_u64 shmem_thp;

  hr_u64 refault_anon; /* pages; workingset_refault_anon and _file of memory.stat */
  hr_u64 refault_file;
  hr_u64 pgscan; /* pages looked at by reclaim, and freed by it; hierarchical */
  hr_u64 pgsteal;
  hr_u64 pgfault; /* page faults; of them, those that waited for a disk */
  hr_u64 pgmajfault;

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
  hr_u64 nr_bursts;
  hr_u64 burst_ns;

  hr_u64 cpu_weight;    /* cpu.weight, 1 to 10000; 0 where cpu.idle is set */
  hr_u64 cpu_quota_us;  /* cpu.max, microseconds in each period, or HR_NO_LIMIT */
  hr_u64 cpu_period_us; /* cpu.max */

  hr_u64 psi_ns[HR_PSI_RESOURCES][HR_PSI_KINDS]; /* *.pressure total, in nanoseconds */

  hr_u64 pids_current; /* tasks; pids.current */
  hr_u64 pids_max;     /* tasks or HR_NO_LIMIT; pids.max */

  hr_u64 io_rbytes; /* io.stat, summed over devices: bytes and operations; 0 where none was made */
  hr_u64 io_wbytes;
  hr_u64 io_rios;
  hr_u64 io_wios;

  hr_u64 swapcached; /* bytes; memory.stat: of swap_usage, what is in memory as well; since 5.13 */
};

/*
 * Items of memory.stat that the kernel finds through an index: a position in memcg_vmstats.state[],
 * or in events[] if HR_IN_EVENTS is set. The five LRU lists come first in state[] everywhere.
 */
enum hr_stat {
  HR_STAT_ANON,
  HR_STAT_FILE,
  HR_STAT_SHMEM,
  HR_STAT_FILE_MAPPED,
  HR_STAT_KERNEL_STACK, /* KiB */
  HR_STAT_PAGETABLES,
  HR_STAT_SLAB_RECLAIMABLE, /* bytes */
  HR_STAT_SLAB_UNRECLAIMABLE,
  HR_STAT_ZSWAP, /* bytes */
  HR_STAT_ZSWAPPED,
  HR_STAT_SWAPCACHED,
  HR_STAT_ANON_THP,
  HR_STAT_FILE_THP,
  HR_STAT_SHMEM_THP,
  HR_STAT_REFAULT_ANON,
  HR_STAT_REFAULT_FILE,
  HR_STAT_PGFAULT,
  HR_STAT_PGMAJFAULT,
  HR_STAT_PGSCAN_KSWAPD, /* pgscan and pgsteal are the sums of these */
  HR_STAT_PGSCAN_DIRECT,
  HR_STAT_PGSCAN_KHUGEPAGED, /* since 6.3 */
  HR_STAT_PGSCAN_PROACTIVE,  /* since 6.15 */
  HR_STAT_PGSTEAL_KSWAPD,
  HR_STAT_PGSTEAL_DIRECT,
  HR_STAT_PGSTEAL_KHUGEPAGED,
  HR_STAT_PGSTEAL_PROACTIVE,
  HR_STATS,
};
#define HR_IN_EVENTS (1U << 31)
#define HR_NO_INDEX (~0U)

/* Set by user space before the sweep is loaded: the verifier then sees constants. */
struct hr_sweep_config {
  hr_u32 groups;          /* hr_group bits to read */
  hr_u32 kfuncs;          /* hr_kfunc bits: what this kernel has */
  hr_u32 page_shift;      /* log2 of the page size */
  hr_u32 index[HR_STATS]; /* by hr_stat; HR_NO_INDEX: not known, or the kernel does not keep it */
};
/*
 * User space looks the kfuncs up in the kernel's BTF: Linux 6.1 refuses a program that tests a
 * kfunc's address ("isn't KIND_VAR") exactly where the kfunc exists.
 */
enum hr_kfunc {
  HR_KFUNC_RDONLY_CAST = 1 << 0,  /* bpf_rdonly_cast, since 6.2 */
  HR_KFUNC_CGROUP_FLUSH = 1 << 1, /* cgroup_rstat_flush, 6.1 to 6.15 */
  HR_KFUNC_CSS_FLUSH = 1 << 2,    /* css_rstat_flush, since 6.16 */
  HR_KFUNC_MEMCG = 1 << 3,        /* bpf_get_mem_cgroup and its kin, since 7.0 */
  HR_KFUNC_ITEMS = 1 << 4,        /* ask them for the items: the tables are hidden */
  HR_KFUNC_CSS_ITER = 1 << 5,     /* bpf_iter_css_new and its kin, since 6.7 */
};

/*
 * One stamp for each record, and far smaller: the pass that last wrote the record. Code that looks
 * for changes reads this table and skips the records of idle cgroups.
 */
struct hr_change_stamp {
  hr_u64 serial; /* of the cgroup, never used again (cgroup_subsys_state.serial_nr) */
  hr_u64 cpu_ns; /* its CPU time when the record was written */
  hr_u32 pass;   /* the pass that wrote the record */
  hr_u32 populated;
};

/* How long a cgroup is visited after it was last active, in seconds: the kernel adds a wait to the
 * pressure up to two seconds after it ended. A power of two, less one. */
#define HR_ACTIVE_SECONDS 3

/* The parameters and results of a pass; user space sets all but `flushed` before each pass. */
struct hr_sweep_pass {
  hr_u32 next;    /* records written, or left as they were */
  hr_u32 lost;    /* cgroups that did not fit in the map */
  hr_u32 flushed; /* groups the pass itself brought up to date before reading */
  /* The records of idle cgroups are not written, except those whose running number has `share` in
   * the bits of `mask`; mask 0: every cgroup is read. */
  hr_u32 mask;
  hr_u32 share;
  hr_u32 idle_skipped; /* cgroups left as they were */
  hr_u32 number;       /* of this pass, one more than the last one's */
  hr_u32 reassigned;   /* records that are of another cgroup than before the pass */
  /* A cgroup is idle if it used no CPU time; with compare_usage, also its usage, working set and
   * pressure must be unchanged, which takes several times as long to check. */
  hr_u32 compare_usage;
  hr_u32 visited; /* cgroups whose state the pass looked at */
  /* The second that the pass is in; and a bit for each second that has begun since the pass before,
   * at its number modulo HR_ACTIVE_SECONDS + 1: what is kept of older ones there is forgotten. */
  hr_u32 second;
  hr_u32 forget;
};

/* Read by stat_index.bpf.c: the first bytes of one of the kernel's two index tables. */
#define HR_INDEX_TABLE_BYTES 1024
struct hr_index_request {
  hr_u32 of_events; /* 0: mem_cgroup_stats_index[]; 1: mem_cgroup_events_index[] */
  hr_u32 bytes;     /* at most HR_INDEX_TABLE_BYTES */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct hr_record) == 64 * 8, "both sides must agree on hr_record");
_Static_assert(sizeof(struct hr_sweep_config) == (3 + HR_STATS) * 4, "and on hr_sweep_config");
_Static_assert(sizeof(struct hr_change_stamp) == 3 * 8, "and on hr_mark");
_Static_assert(sizeof(struct hr_sweep_pass) == 12 * 4, "and on hr_sweep_pass");
_Static_assert(sizeof(struct hr_index_request) == 2 * 4, "and on hr_index_request");
#else
static_assert(sizeof(struct hr_record) == 64 * 8, "both sides must agree on hr_record");
static_assert(sizeof(struct hr_change_stamp) == 3 * 8, "and on hr_mark");
#endif
