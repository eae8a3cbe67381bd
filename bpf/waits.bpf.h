/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits: adding one that ended to its total, count and log2 histogram. */
#pragma once

#include "kernel.bpf.h"

#include <headroom/bpf/stall_abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Bits needed for the value: 0 for 0, else 1 + the position of its highest one. */
static __always_inline hr_u32 bits_of(hr_u64 value) {
  hr_u32 bits = 0;
  if (value >> 32) value >>= 32, bits += 32;
  if (value >> 16) value >>= 16, bits += 16;
  if (value >> 8) value >>= 8, bits += 8;
  if (value >> 4) value >>= 4, bits += 4;
  if (value >> 2) value >>= 2, bits += 2;
  if (value >> 1) value >>= 1, bits += 1;
  return bits + (hr_u32)value;
}

static __always_inline void add_wait(struct hr_waits* waits, hr_u64 ns) {
  hr_u32 bucket = bits_of(ns / 1000);
  if (bucket >= HR_WAIT_BUCKETS) bucket = HR_WAIT_BUCKETS - 1;
  __sync_fetch_and_add(&waits->ns, ns);
  __sync_fetch_and_add(&waits->count, 1);
  __sync_fetch_and_add(&waits->buckets[bucket], 1);
}

/* The cgroup is in the watched tree. */
#define watched(cgrp) ((cgrp)->root->hierarchy_id == config.hierarchy)
