/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPU time, throttling and CPU limits of a record. */
#pragma once

#include "sweep.bpf.h"

/* part * whole / of, with part <= of: 2^-32 of the result is lost, no 128-bit product is needed. */
static __always_inline hr_u64 share(hr_u64 part, hr_u64 of, hr_u64 whole) {
  hr_u64 above = of >> 32;
  hr_u32 shift = 0;
  if (above >> 16) above >>= 16, shift += 16;
  if (above >> 8) above >>= 8, shift += 8;
  if (above >> 4) above >>= 4, shift += 4;
  if (above >> 2) above >>= 2, shift += 2;
  if (above >> 1) above >>= 1, shift += 1;
  if (above) shift += 1;
  hr_u64 fraction = ((part >> shift) << 32) / (of >> shift);
  return (whole >> 32) * fraction + (((whole & 0xffffffff) * fraction) >> 32);
}

/*
 * usage is exact; user and system are tick samples that cpu.stat scales to add up to usage, and
 * keeps from going back by what it last showed (cputime_adjust()). We do the same and leave its
 * memory alone.
 */
static __always_inline hr_u32 fill_cpu(struct hr_record* r, struct cgroup* cgrp) {
  hr_u64 usage = cgrp->bstat.cputime.sum_exec_runtime;
  hr_u64 user = cgrp->bstat.cputime.utime;
  hr_u64 system = cgrp->bstat.cputime.stime;
  hr_u64 shown_user = cgrp->prev_cputime.utime;
  hr_u64 shown_system = cgrp->prev_cputime.stime;
  if (shown_user + shown_system >= usage) {
    user = shown_user;
    system = shown_system;
  } else {
    if (!system)
      user = usage;
    else if (!user)
      system = usage;
    else
      system = share(system, user + system, usage);
    if (system < shown_system) system = shown_system;
    user = usage - system;
    if (user < shown_user) {
      user = shown_user;
      system = usage - user;
    }
  }
  r->cpu_usage_ns = usage;
  r->cpu_user_ns = user;
  r->cpu_system_ns = system;
  return HR_CPU;
}

static __always_inline hr_u32 fill_throttle(struct hr_record* r, struct task_group* tg,
                                            const int direct) {
  if (!bpf_core_field_exists(tg->cfs_bandwidth)) return 0;
  const int has_bursts = bpf_core_field_exists(tg->cfs_bandwidth.burst_time);
  r->nr_periods = (hr_u32)read(tg->cfs_bandwidth.nr_periods);
  /* The others are counted where a period ends. */
  if (!r->nr_periods) {
    r->nr_throttled = 0;
    r->throttled_ns = 0;
    r->nr_bursts = has_bursts ? 0 : HR_UNKNOWN;
    r->burst_ns = has_bursts ? 0 : HR_UNKNOWN;
    return HR_THROTTLE;
  }
  r->nr_throttled = (hr_u32)read(tg->cfs_bandwidth.nr_throttled);
  r->throttled_ns = read(tg->cfs_bandwidth.throttled_time);
  r->nr_bursts = has_bursts ? (hr_u32)read(tg->cfs_bandwidth.nr_burst) : HR_UNKNOWN;
  r->burst_ns = has_bursts ? read(tg->cfs_bandwidth.burst_time) : HR_UNKNOWN;
  return HR_THROTTLE;
}

/* As cpu.weight and cpu.max print them. */
static __always_inline hr_u32 fill_cpu_limits(struct hr_record* r, struct task_group* tg,
                                              const int direct) {
  if (!bpf_core_field_exists(tg->cfs_bandwidth.quota) || !bpf_core_field_exists(tg->shares))
    return 0;
  hr_u64 shares = read(tg->shares) >> 10;
  r->cpu_weight = (shares * 100 + 512) / 1024;
  hr_u64 quota = read(tg->cfs_bandwidth.quota);
  r->cpu_quota_us = quota == ~0ULL ? HR_NO_LIMIT : quota / 1000;
  r->cpu_period_us = read(tg->cfs_bandwidth.period) / 1000;
  return HR_CPU_LIMITS;
}

static __always_inline hr_u32 fill_bandwidth(struct hr_record* r, struct task_group* tg,
                                             const int direct) {
  hr_u32 valid = wanted(HR_THROTTLE) ? fill_throttle(r, tg, direct) : 0;
  return wanted(HR_CPU_LIMITS) ? valid | fill_cpu_limits(r, tg, direct) : valid;
}
