/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types our programs read, and of each only the fields they read. libbpf moves every
 * access to where the running kernel's BTF has the field (preserve_access_index), so neither order
 * nor size here means anything. Names and nesting do: each rename we know of stands here with the
 * release that made it. Layouts were compared with the BTF of 6.1, 6.12, 6.18 and 7.2.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* From the user-space ABI (linux/bpf.h), whose header needs asm/types.h, which clang's BPF target
 * has no path to on Debian. */
enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_HASH = 5,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
  BPF_MAP_TYPE_CGRP_STORAGE = 32, /* since 6.2 */
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1U << 0, BPF_F_MMAPABLE = 1U << 10 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  int counter;
} atomic_t;
typedef struct {
  __s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t; /* 64-bit kernels only */

/* --- cgroups --------------------------------------------------------------------------------- */

struct kernfs_node {
  __u64 id; /* a plain u64 since 5.5, a union kernfs_node_id before */
};

struct cgroup_subsys_state {
  struct cgroup* cgroup;
  __u64 serial_nr; /* grows with every css made, and is never used again */
  struct cgroup_subsys_state* parent;
  unsigned int flags; /* CSS_* */
};
/* 7.2: the count of populated css_sets moved from struct cgroup into its css. */
struct cgroup_subsys_state___populated {
  int nr_populated_csets;
};

struct task_cputime {
  __u64 stime;
  __u64 utime;
  unsigned long long sum_exec_runtime;
};
struct cgroup_base_stat {
  struct task_cputime cputime;
};
struct prev_cputime {
  __u64 utime;
  __u64 stime;
};

struct cgroup {
  struct cgroup_subsys_state self;
  struct cgroup_root* root;
  int nr_populated_csets; /* up to 7.1 */
  int nr_populated_domain_children;
  int nr_populated_threaded_children;
  struct kernfs_node* kn;
  struct cgroup_subsys_state* subsys[1]; /* indexed by enum cgroup_subsys_id */
  struct cgroup_base_stat bstat;         /* as of the last rstat flush */
  struct prev_cputime prev_cputime;
  struct psi_group* psi; /* a pointer since 6.0, embedded before; NULL while PSI is off */
};

struct cgroup_root {
  int hierarchy_id; /* 0: the unified one */
  struct cgroup cgrp;
};

enum cgroup_subsys_id { cpu_cgrp_id, io_cgrp_id, memory_cgrp_id, pids_cgrp_id };

/* --- memory ---------------------------------------------------------------------------------- */

struct page_counter {
  atomic_long_t usage; /* pages */
  unsigned long watermark;
  unsigned long min;
  unsigned long low;
  unsigned long high;
  unsigned long max;
};

struct memcg_vmstats {
  /* Indexed by enum node_stat_item and memcg_stat_item up to 6.10, compacted since 6.11 through
   * mem_cgroup_stats_index[] (see stat_index.bpf.c). In both layouts the five LRU lists come first,
   * in enum order. */
  long state[64];
  /* Compacted since 6.1 through mem_cgroup_events_index[]; indexed by enum vm_event_item before. */
  unsigned long events[64];
};

enum node_stat_item {
  NR_INACTIVE_FILE,
  NR_ACTIVE_FILE,
  NR_SLAB_RECLAIMABLE_B, /* of a node in pages, in spite of its name */
  NR_ANON_MAPPED,
  NR_FILE_PAGES
};
enum zone_stat_item { NR_FREE_PAGES };
enum zone_type { __MAX_NR_ZONES };
struct zone {
  atomic_long_t vm_stat[1]; /* pages, indexed by enum zone_stat_item */
};
struct pglist_data {
  struct zone node_zones[1]; /* __MAX_NR_ZONES of them, some of them empty */
  atomic_long_t vm_stat[1];  /* pages of a NUMA node, indexed by enum node_stat_item */
};
struct lruvec {
  struct pglist_data* pgdat;
};
struct mem_cgroup_per_node {
  struct lruvec lruvec;
};

struct mem_cgroup {
  struct cgroup_subsys_state css;
  struct page_counter memory;
  struct page_counter swap;                /* in a union with memsw, which is cgroup v1's */
  struct memcg_vmstats* vmstats;           /* a pointer since 6.1, embedded before */
  atomic_long_t memory_events[1];          /* indexed by enum memcg_memory_event; hierarchical */
  struct mem_cgroup_per_node* nodeinfo[1]; /* one for each NUMA node there can be */
};

enum vm_event_item { PGFAULT };
enum memcg_memory_event { MEMCG_LOW, MEMCG_HIGH, MEMCG_MAX, MEMCG_OOM, MEMCG_OOM_KILL };

/* --- CPU, pressure, pids --------------------------------------------------------------------- */

struct list_head {
  struct list_head* next;
};
struct cfs_bandwidth {
  int nr_periods;
  int nr_throttled;
  __u64 throttled_time; /* ns */
  int nr_burst;         /* since 5.14 */
  __u64 burst_time;     /* ns */
  __u64 quota;          /* ns; all ones: no limit */
  __u64 period;         /* ns */
  struct list_head throttled_cfs_rq;
};
struct task_group {
  struct cgroup_subsys_state css;
  unsigned long shares; /* weight times 1024/100, in fixed point of 10 bits */
  struct cfs_bandwidth cfs_bandwidth;
};
struct cfs_rq {
  struct task_group* tg;
  int throttled;
};

enum psi_aggregators { PSI_AVGS };
enum psi_states {
  PSI_IO_SOME,
  PSI_IO_FULL,
  PSI_MEM_SOME,
  PSI_MEM_FULL,
  PSI_CPU_SOME,
  PSI_CPU_FULL, /* since 5.13 */
};
/* total[aggregator][state], ns. pahole before 1.31 or so flattened it in BTF to total[12] (seen up
 * to 6.18); 7.2's BTF keeps the two dimensions, and libbpf takes only an array of the same depth.
 * PSI_AVGS is the first row in both. */
struct psi_group {
  _Bool enabled; /* since 6.1: cgroup.pressure */
  __u64 total[12];
};
struct psi_group___rows {
  __u64 total[2][6];
};

struct pids_cgroup {
  struct cgroup_subsys_state css;
  atomic64_t counter;
  atomic64_t limit; /* beyond PID_MAX_LIMIT: none */
};

/* --- I/O ------------------------------------------------------------------------------------- */

struct hlist_node {
  struct hlist_node* next;
};
struct hlist_head {
  struct hlist_node* first;
};
struct blkcg {
  struct cgroup_subsys_state css;
  struct hlist_head blkg_list; /* one blkcg_gq for each device the cgroup has used */
};
struct blkg_iostat {
  __u64 bytes[3]; /* read, written, discarded */
  __u64 ios[3];
};
struct blkg_iostat_set {
  struct blkg_iostat cur; /* as of the last rstat flush */
};
struct gendisk {
  char disk_name[32];
};
struct request_queue {
  struct gendisk* disk; /* since 5.15 */
};
struct blkcg_gq {
  struct request_queue* q;
  struct hlist_node blkcg_node;
  struct blkg_iostat_set iostat; /* of the cgroup and all below it */
};

/* --- tasks ----------------------------------------------------------------------------------- */

struct css_set {
  struct cgroup_subsys_state* subsys[1]; /* indexed by enum cgroup_subsys_id */
  struct cgroup* dfl_cgrp;               /* in the unified hierarchy */
};

typedef struct {
  unsigned long bits[1]; /* one word for each 64 NUMA nodes there can be */
} nodemask_t;
struct mempolicy {
  unsigned short mode;
  nodemask_t nodes; /* since 5.14 */
};

struct signal_struct {
  atomic_t live; /* threads that have not begun to exit */
  int group_exit_code;
};

struct task_struct {
  unsigned int flags; /* PF_* */
  int tgid;
  int exit_code;
  char comm[16];
  struct css_set* cgroups;
  struct signal_struct* signal;
  nodemask_t mems_allowed;     /* by its cpuset */
  struct mempolicy* mempolicy; /* NULL: the default */
};

struct oom_control {
  struct mem_cgroup* memcg; /* whose limit; NULL: the node ran out */
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000
#define MPOL_BIND 2 /* ABI (linux/mempolicy.h) */

#define CSS_ONLINE (1U << 1)

/* An open-coded iterator's state: the kernel's own. */
struct bpf_iter_css {
  __u64 opaque[3];
};

/* ABI (linux/bpf.h): 16 bytes that are the kernel's own. */
struct bpf_timer {
  __u64 opaque[2];
};
#define CLOCK_MONOTONIC 1

/* The iterator's context is ABI: two pointers in 64-bit slots. */
struct bpf_iter__cgroup {
  struct bpf_iter_meta* meta;
  struct cgroup* cgroup;
};
struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};
