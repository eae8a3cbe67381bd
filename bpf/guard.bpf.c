/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guard: a timer that looks at the node's memory and wakes user space once the requested amount of
 * it has been used. Two sums are watched, because memory that the kernel takes for itself (pipes,
 * sockets, page tables) is in neither anon nor file: the working set (anon + file - inactive_file,
 * as the kubelet computes it of the root), which grows, and what is available (free pages, page
 * cache, reclaimable slab), which falls.
 *
 * It looks again when what is left could be gone at the fastest rate this machine fills memory, as
 * user space does, but a look costs some ten loads for each NUMA node and no wakeup. The counters
 * are the nodes' own, which need no flush; each CPU keeps up to 125 pages of a counter to itself
 * (calculate_normal_threshold(), mm/vmstat.c). User space reads memory.stat before it decides
 * anything.
 */
#include "kernel.bpf.h"

#include <headroom/bpf/guard_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_NODES 1024 /* 1 << CONFIG_NODES_SHIFT, at most */
#define MAX_ZONES 8    /* of a node; the kernel has six at most */
#define MAX_DEPTH 32   /* of the daemon's own cgroup */
#define NOT_ARMED (~0ull)
#define SECOND 1000000000ull

const volatile struct hr_guard_config config;

struct hr_guard_counts counts;

/* Of struct pglist_data, from the first one on without a gap; the kernel frees none. */
__u64 node_addresses[MAX_NODES];
/* The working set to wake at, in pages. */
__u64 wake_at_pages = NOT_ARMED;
/* What is available then, in pages, if that falls faster. */
__s64 wake_at_available;
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

/* The working set that was found, in pages, for each wake. */
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

static __always_inline __s64 free_pages(struct pglist_data* node) {
  const __u64 zones = (__u64)node + bpf_core_field_offset(struct pglist_data, node_zones);
  const __u64 counter = bpf_core_field_offset(struct zone, vm_stat) +
                        bpf_core_enum_value(enum zone_stat_item, NR_FREE_PAGES) * sizeof(__s64);
  __s64 sum = 0;
  for (int i = 0; i < MAX_ZONES; ++i) {
    if (i >= bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES)) break;
    __s64 pages = 0;
    bpf_probe_read_kernel(&pages, sizeof(pages),
                          (void*)(zones + i * bpf_core_type_size(struct zone) + counter));
    sum += pages;
  }
  return sum;
}

struct sums {
  __s64 working_set;
  __s64 available;
};

static long add_pages(__u32 i, struct sums* sums) {
  if (i >= MAX_NODES) return 1;
  struct pglist_data* node = (void*)node_addresses[i];
  if (!node) return 1;
  const __s64 inactive = pages_of(node, NR_INACTIVE_FILE);
  sums->working_set += pages_of(node, NR_ANON_MAPPED) + pages_of(node, NR_FILE_PAGES) - inactive;
  sums->available += free_pages(node) + inactive + pages_of(node, NR_ACTIVE_FILE) +
                     pages_of(node, NR_SLAB_RECLAIMABLE_B);
  return 0;
}

static __always_inline struct sums look(void) {
  struct sums sums = {};
  bpf_loop(config.nodes, add_pages, &sums, 0);
  if (sums.working_set < 0) sums.working_set = 0;
  if (sums.available < 0) sums.available = 0;
  counts.pages = sums.working_set;
  counts.available = sums.available;
  counts.looked_at_ns = bpf_ktime_get_boot_ns();
  return sums;
}

/* What may be used until the wake, in pages; 0: it is due. */
static __always_inline __u64 pages_left(const struct sums* found, __u64 wanted) {
  const __s64 growth = (__s64)wanted - found->working_set;
  const __s64 fall = found->available - wake_at_available;
  const __s64 left = growth < fall ? growth : fall;
  return left > 0 ? left : 0;
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

static int check_memory(void* map, __u32* key, struct alarm* alarm) {
  __u64 number = request_number;
  __u64 wanted = wake_at_pages;
  if (wanted == NOT_ARMED) return 0;
  counts.checks++;
  const struct sums found = look();
  __u64 left = pages_left(&found, wanted);
  if (!left) {
    if (__sync_val_compare_and_swap(&wake_at_pages, wanted, NOT_ARMED) == wanted)
      wake(found.working_set);
    return 0;
  }
  bpf_timer_start(&alarm->timer, check_delay(left), 0);
  if (request_number == number) return 0;
  /* A request came meanwhile, and this may have put its timer off. */
  wanted = wake_at_pages;
  if (wanted == NOT_ARMED) return 0;
  bpf_timer_start(&alarm->timer, check_delay(pages_left(&found, wanted)), 0);
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
  const struct sums now = look();
  wake_at_available = now.available - (__s64)request.pages;
  wake_at_pages = now.working_set + request.pages;
  bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC); /* EBUSY: it is */
  if (bpf_timer_set_callback(&alarm->timer, check_memory)) return 2;
  return bpf_timer_start(&alarm->timer, check_delay(request.pages), 0) ? 3 : 0;
}
