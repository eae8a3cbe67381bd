/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The binary interface of the guard: guard.bpf.c watches the node's memory, and wakes user space
 * when a requested amount of it has been used. Same rules as abi.h: fixed width, explicit
 * padding, no pointers.
 */
#pragma once

#include <headroom/bpf/stall_abi.h>

/* User space is woken when the working set has grown, or what is available has fallen, by this
 * amount. */
struct hr_guard_request {
  hr_u64 pages;            /* 0: not any more */
  hr_u64 pages_per_second; /* as fast as memory can be used; never 0 */
  hr_u64 floor_ns;         /* bounds of the time between two looks */
  hr_u64 ceiling_ns;
};

struct hr_guard_config {
  hr_u32 nodes; /* NUMA nodes this machine can have: the highest number and one */
};

/* Counters since the program was loaded, and what it saw last. */
struct hr_guard_counts {
  hr_u64 checks; /* of the timer */
  hr_u64 wakeups;
  hr_u64 lost;         /* wakes that found no room in the ring */
  hr_u64 looked_at_ns; /* boot time of the latest look, a check's or a request's */
  hr_u64 pages;        /* the working set then */
  hr_u64 available;    /* pages that were free, of files on the LRU lists, or reclaimable slab */
  hr_u64 nodes;        /* NUMA nodes that were added up, as of the latest request */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct hr_guard_counts) == 7 * 8, "both sides must agree on it");
#else
static_assert(sizeof(hr_guard_counts) == 7 * 8, "both sides must agree on it");
#endif
