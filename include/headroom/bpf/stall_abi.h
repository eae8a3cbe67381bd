/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The binary interface for waits and for events of cgroups: stall.bpf.c, throttle.bpf.c and
 * lifecycle.bpf.c write it, user space reads it. Same rules as abi.h: fixed width, explicit
 * padding, no pointers.
 */
#pragma once

#include <headroom/bpf/abi.h>

#ifndef __BPF__
typedef int32_t hr_s32;
#else
typedef int hr_s32;
#endif

/* Why a task waited for memory. */
enum hr_stall_cause {
  HR_STALL_GLOBAL,     /* direct reclaim for no cgroup's sake: the node ran short */
  HR_STALL_LIMIT,      /* memory.max of its cgroup, or of one above it */
  HR_STALL_HIGH,       /* memory.high or memory.swap.high of one of these: reclaim and sleep */
  HR_STALL_REFAULT,    /* reading back what the node's reclaim took: cache, swap */
  HR_STALL_COMPACTION, /* direct compaction: there was memory, but not in one piece */
  HR_STALL_CAUSES
};

/*
 * buckets[0] counts waits below 1 us, buckets[i] those below 2^i us, the last one all longer ones.
 * 24 buckets cover the range from a short reclaim to the 2 s that memory.high makes a task sleep.
 */
#define HR_WAIT_BUCKETS 24

/* Waits that have ended. A wait is counted when it ends. */
struct hr_waits {
  hr_u64 ns;
  hr_u64 count;
  hr_u32 buckets[HR_WAIT_BUCKETS];
};

/* cgroup id -> the waits of its own tasks; tasks of the cgroups below it are not included. */
struct hr_stalls {
  struct hr_waits causes[HR_STALL_CAUSES];
};

/* cgroup id -> its run queues' waits for its CPU quota. */
struct hr_throttles {
  struct hr_waits waits; /* one for each queue and throttling */
  hr_u64 any_ns;         /* the time in which at least one of the queues waited */
  hr_u64 any_since;      /* of the program, see throttle.bpf.c */
};

/* What could not be recorded, since the program was loaded. */
struct hr_losses {
  hr_u64 map;  /* no room in a map */
  hr_u64 ring; /* no room in the ring */
};

/*
 * The hierarchy whose cgroups are watched: ids are unique in one hierarchy only. 0 is the unified
 * one (cgroup v2); another number is for tests on a hybrid host.
 */
struct hr_watch_config {
  hr_s32 hierarchy;
  hr_u32 stall_source; /* stall.bpf.c: hr_stall_brackets */
};

/* What begins and ends a stall. */
enum hr_stall_source {
  HR_STALL_SOURCE_MEMSTALL, /* psi_memstall_enter and _leave: every wait for memory */
  HR_STALL_SOURCE_RECLAIM,  /* the tracepoints of reclaim, where functions cannot be hooked: neither
                           refaults, nor memory.high's sleep, nor compaction */
};

enum hr_event_kind {
  HR_EVENT_CREATED = 1, /* made */
  HR_EVENT_UNPOPULATED, /* cgroup.events turned to "populated 0" */
  HR_EVENT_REMOVED,     /* removed */
  HR_EVENT_OOM_KILL,    /* the kernel's OOM killer chose a process of it */
  HR_EVENT_EXIT,        /* a process of a cgroup we killed has exited */
};

struct hr_event {
  hr_u64 at_ns;  /* CLOCK_BOOTTIME */
  hr_u64 cgroup; /* whose event it is */
  hr_u64 other;  /* BORN: the parent. OOM_KILL: whose limit was hit, 0: the node's. EXIT: the one we
                    killed, which is `cgroup` or above it */
  hr_u32 kind;   /* hr_event_kind */
  hr_u32 pid;    /* OOM_KILL, EXIT: the process */
  hr_u32 status; /* EXIT: as wait(2) returns it */
  hr_u32 reserved;
  char comm[16]; /* OOM_KILL, EXIT */
};

#ifndef __cplusplus
_Static_assert(sizeof(struct hr_waits) == 112, "both sides must agree on hr_waits");
_Static_assert(sizeof(struct hr_stalls) == 560, "and on hr_stalls");
_Static_assert(sizeof(struct hr_throttles) == 128, "and on hr_throttles");
_Static_assert(sizeof(struct hr_event) == 56, "and on hr_event");
#else
static_assert(sizeof(struct hr_stalls) == 560, "both sides must agree on hr_stalls");
static_assert(sizeof(struct hr_throttles) == 128, "and on hr_throttles");
static_assert(sizeof(struct hr_event) == 56, "and on hr_event");
#endif
