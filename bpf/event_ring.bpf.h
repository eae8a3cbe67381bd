/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Emit: the way out for what happens once. One ring for the object that includes this, and a count
 * of what found no room in it: the losses are mapped, so user space reads them for nothing.
 */
#pragma once

#include "kernel.bpf.h"

#include <headroom/bpf/stall_abi.h>

#include <bpf/bpf_helpers.h>

struct hr_losses losses;

/* 4,096 events: a node's cgroups do not come and go faster than the loop wakes. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 * 1024);
} events SEC(".maps");

/* An event to be filled in and submitted; null, and counted, where the ring is full. */
static __always_inline struct hr_event* reserve_event(hr_u32 kind, hr_u64 cgroup) {
  struct hr_event* event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
  if (!event) {
    __sync_fetch_and_add(&losses.ring, 1);
    return event;
  }
  __builtin_memset(event, 0, sizeof(*event));
  event->at_ns = bpf_ktime_get_boot_ns();
  event->kind = kind;
  event->cgroup = cgroup;
  return event;
}
