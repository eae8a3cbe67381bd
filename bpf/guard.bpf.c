/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guard: a timer that looks at the node's working set (anon + file - inactive_file, as the kubelet
 * computes it of the root) and wakes user space once it has grown by the requested amount.
 *
 * It looks again when what is left could be gone at the fastest rate this machine fills memory, as
 * user space does, but a look costs three loads for each NUMA node and no wakeup. The counters are
 * the nodes' own, which need no flush; the kernel folds its CPUs' differences into them, so they
 * are late by some pages. User space reads memory.stat before it decides anything.
 */
#include "kernel.bpf.h"

#include <headroom/guard_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_NODES 64
#define NOT_ARMED (~0ull)
#define SECOND 1000000000ull

const volatile struct hr_guard_config config;

struct hr_guard_counts counts;

/* Of struct pglist_data, once found; the kernel frees none. */
__u64 node_addresses[MAX_NODES];
/* The working set to wake at, in pages. */
__u64 wake_at_pages = NOT_ARMED;
struct hr_guard_request request;

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

/* Any cgroup's memory leads to the nodes. */
static __always_inline int find_nodes(void) {
  if (node_addresses[0]) return 0;
  struct task_struct* task = (void*)bpf_get_current_task();
  struct css_set* set = BPF_CORE_READ(task, cgroups);
  struct mem_cgroup* memcg = 0; /* its css is the first member */
  bpf_core_read(&memcg, sizeof(memcg),
                &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
  if (!memcg) return 1;
  for (__u32 i = 0; i < MAX_NODES && i < config.nodes; ++i) {
    struct mem_cgroup_per_node* here = 0;
    bpf_core_read(&here, sizeof(here), &memcg->nodeinfo[i]);
    if (here) node_addresses[i] = (__u64)BPF_CORE_READ(here, lruvec.pgdat);
  }
  return !node_addresses[0];
}

#define pages_of(node, item)                                                                 \
  ({                                                                                         \
    __s64 pages = 0;                                                                         \
    bpf_core_read(&pages, sizeof(pages),                                                     \
                  &(node)->vm_stat[bpf_core_enum_value(enum node_stat_item, item)].counter); \
    pages;                                                                                   \
  })

static __always_inline __u64 working_set(void) {
  __s64 pages = 0;
  for (__u32 i = 0; i < MAX_NODES && i < config.nodes; ++i) {
    struct pglist_data* node = (void*)node_addresses[i];
    if (!node) continue;
    pages += pages_of(node, NR_ANON_MAPPED) + pages_of(node, NR_FILE_PAGES) -
             pages_of(node, NR_INACTIVE_FILE);
  }
  return pages > 0 ? (__u64)pages : 0;
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
  wake_at_pages = NOT_ARMED;
  counts.wakeups++;
  if (bpf_ringbuf_output(&wakeups, &found, sizeof(found), 0)) counts.lost++;
}

static int check_working_set(void* map, __u32* key, struct alarm* alarm) {
  __u64 wanted = wake_at_pages;
  if (wanted == NOT_ARMED) return 0;
  counts.checks++;
  __u64 found = working_set();
  if (found >= wanted)
    wake(found);
  else
    bpf_timer_start(&alarm->timer, check_delay(wanted - found), 0);
  return 0;
}

SEC("syscall")
int arm(struct hr_guard_request* ctx) {
  __u32 first = 0;
  struct alarm* alarm = bpf_map_lookup_elem(&alarms, &first);
  if (!alarm || find_nodes()) return 1;
  wake_at_pages = NOT_ARMED;
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
