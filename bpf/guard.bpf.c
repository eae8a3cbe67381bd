/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guard: a timer that looks at the node's working set (anon + file - inactive_file, as the kubelet
 * computes it of the root) and wakes user space once it has grown by the requested amount.
 *
 * It looks again when what is left could be gone at the fastest rate this machine fills memory, as
 * user space does, but a look costs three loads for each NUMA node and no wakeup. The counters are
 * the nodes' own, which need no flush; each CPU keeps up to 125 pages of a counter to itself
 * (calculate_normal_threshold(), mm/vmstat.c). User space reads memory.stat before it decides
 * anything.
 */
#include "kernel.bpf.h"

#include <headroom/guard_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_NODES 1024 /* 1 << CONFIG_NODES_SHIFT, at most */
#define MAX_DEPTH 32   /* of the daemon's own cgroup */
#define NOT_ARMED (~0ull)
#define SECOND 1000000000ull

const volatile struct hr_guard_config config;

struct hr_guard_counts counts;

/* Of struct pglist_data, from the first one on without a gap; the kernel frees none. */
__u64 node_addresses[MAX_NODES];
/* The working set to wake at, in pages. */
__u64 wake_at_pages = NOT_ARMED;
struct hr_guard_request request;
/* Of the requests: a check that began before the latest one must not undo it. */
__u64 request_number;
/* The kernel's array of nodes; 0: not looked for, 1: it is hidden. */
__u64 node_table;

struct alarm {
  struct bpf_timer timer;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct alarm);
} alarms SEC(".maps");

/* What was found, in pages, for each wake. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} wakeups SEC(".maps");

static const char kNodeData[] = "node_data";

/* In kallsyms where that has data (CONFIG_KALLSYMS_ALL, as in Debian's kernels). */
static __always_inline void find_node_table(void) {
  if (node_table) return;
  __u64 address = 0;
  long error = bpf_kallsyms_lookup_name(kNodeData, sizeof(kNodeData), 0, &address);
  node_table = error || !address ? 1 : address;
}

/*
 * The root's memory leads to each node that it has had a page on: lruvec->pgdat is set when the
 * kernel first uses the list (mem_cgroup_lruvec()), with MGLRU when the cgroup is made.
 */
static __always_inline struct mem_cgroup* root_memory(void) {
  struct task_struct* task = (void*)bpf_get_current_task();
  struct css_set* set = BPF_CORE_READ(task, cgroups);
  struct cgroup_subsys_state* css = 0;
  bpf_core_read(&css, sizeof(css),
                &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
  for (int i = 0; i < MAX_DEPTH && css; ++i) {
    struct cgroup_subsys_state* parent = BPF_CORE_READ(css, parent);
    if (!parent) return (void*)css; /* the css is the first member */
    css = parent;
  }
  return 0;
}

static __always_inline __u64 node_at(struct mem_cgroup* memcg, __u32 i) {
  if (node_table > 1) {
    __u64 node = 0;
    bpf_probe_read_kernel(&node, sizeof(node), (void*)(node_table + i * sizeof(node)));
    return node;
  }
  struct mem_cgroup_per_node* here = 0;
  if (!memcg) return 0;
  bpf_core_read(&here, sizeof(here), &memcg->nodeinfo[i]);
  return here ? (__u64)BPF_CORE_READ(here, lruvec.pgdat) : 0;
}

struct search {
  struct mem_cgroup* memcg;
  __u32 found;
};

static long add_node(__u32 i, struct search* search) {
  __u64 node = node_at(search->memcg, i);
  if (node && search->found < MAX_NODES) node_addresses[search->found++ & (MAX_NODES - 1)] = node;
  return 0;
}

/* At each request: memory may have been plugged in. */
static __always_inline int find_nodes(void) {
  find_node_table();
  struct search search = {.memcg = node_table > 1 ? 0 : root_memory(), .found = 0};
  bpf_loop(config.nodes, add_node, &search, 0);
  counts.nodes = search.found;
  return !search.found;
}

#define pages_of(node, item)                                                                 \
  ({                                                                                         \
    __s64 pages = 0;                                                                         \
    bpf_core_read(&pages, sizeof(pages),                                                     \
                  &(node)->vm_stat[bpf_core_enum_value(enum node_stat_item, item)].counter); \
    pages;                                                                                   \
  })

static long add_pages(__u32 i, __s64* sum) {
  if (i >= MAX_NODES) return 1;
  struct pglist_data* node = (void*)node_addresses[i];
  if (!node) return 1;
  *sum += pages_of(node, NR_ANON_MAPPED) + pages_of(node, NR_FILE_PAGES) -
          pages_of(node, NR_INACTIVE_FILE);
  return 0;
}

static __always_inline __u64 working_set(void) {
  __s64 pages = 0;
  bpf_loop(config.nodes, add_pages, &pages, 0);
  counts.pages = pages > 0 ? (__u64)pages : 0;
  counts.looked_at_ns = bpf_ktime_get_boot_ns();
  return counts.pages;
}

static __always_inline __u64 check_delay(__u64 left) {
  __u64 rate = request.pages_per_second;
  /* Further off than this it is the ceiling that counts, and the product does not overflow. */
  __u64 seconds = rate ? left / rate : 0;
  __u64 wait = seconds >= 10 || !rate ? request.ceiling_ns : left * SECOND / rate;
  if (wait > request.ceiling_ns) wait = request.ceiling_ns;
  return wait < request.floor_ns ? request.floor_ns : wait;
}

static void wake(__u64 found) {
  counts.wakeups++;
  if (bpf_ringbuf_output(&wakeups, &found, sizeof(found), 0)) counts.lost++;
}

static int check_working_set(void* map, __u32* key, struct alarm* alarm) {
  __u64 number = request_number;
  __u64 wanted = wake_at_pages;
  if (wanted == NOT_ARMED) return 0;
  counts.checks++;
  __u64 found = working_set();
  if (found >= wanted) {
    if (__sync_val_compare_and_swap(&wake_at_pages, wanted, NOT_ARMED) == wanted) wake(found);
    return 0;
  }
  bpf_timer_start(&alarm->timer, check_delay(wanted - found), 0);
  if (request_number == number) return 0;
  /* A request came meanwhile, and this may have put its timer off. */
  wanted = wake_at_pages;
  if (wanted == NOT_ARMED) return 0;
  bpf_timer_start(&alarm->timer, check_delay(wanted > found ? wanted - found : 0), 0);
  return 0;
}

SEC("syscall")
int arm(struct hr_guard_request* ctx) {
  __u32 first = 0;
  struct alarm* alarm = bpf_map_lookup_elem(&alarms, &first);
  if (!alarm || find_nodes()) return 1;
  wake_at_pages = NOT_ARMED;
  __sync_fetch_and_add(&request_number, 1);
  if (!ctx->pages) return 0;
  request.pages = ctx->pages;
  request.pages_per_second = ctx->pages_per_second;
  request.floor_ns = ctx->floor_ns;
  request.ceiling_ns = ctx->ceiling_ns;
  wake_at_pages = working_set() + request.pages;
  bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC); /* EBUSY: it is */
  if (bpf_timer_set_callback(&alarm->timer, check_working_set)) return 2;
  return bpf_timer_start(&alarm->timer, check_delay(request.pages), 0) ? 3 : 0;
}
