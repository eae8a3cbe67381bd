/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A whole record: what every controller knows of a cgroup. */
#pragma once

#include "sweep_cpu.bpf.h"
#include "sweep_io.bpf.h"
#include "sweep_memory.bpf.h"
#include "sweep_pressure.bpf.h"

static __always_inline int populated(struct cgroup* cgrp) {
  int count = cgrp->nr_populated_domain_children + cgrp->nr_populated_threaded_children;
  struct cgroup_subsys_state___populated* self = (void*)&cgrp->self;
  if (bpf_core_field_exists(cgrp->nr_populated_csets))
    count += cgrp->nr_populated_csets;
  else if (bpf_core_field_exists(self->nr_populated_csets))
    count += self->nr_populated_csets;
  return count > 0;
}

#define HR_PID_MAX_LIMIT (4 * 1024 * 1024) /* of 64-bit kernels; one more is "max" */

static __always_inline hr_u32 fill_pids(struct hr_record* r, struct pids_cgroup* pids,
                                        const int direct) {
  if (!bpf_core_field_exists(pids->counter)) return 0;
  r->pids_current = read(pids->counter.counter);
  hr_u64 limit = read(pids->limit.counter);
  r->pids_max = limit > HR_PID_MAX_LIMIT ? HR_NO_LIMIT : limit;
  return HR_PIDS;
}

/* What is kept behind a css. */
static __always_inline hr_u32 fill_controllers(struct hr_record* r,
                                               struct cgroup_subsys_state* self, int is_root,
                                               const int direct) {
  struct cgroup* cgrp = self->cgroup;
  struct cgroup_subsys_state* css;
  hr_u32 valid = 0;
  if (wanted(HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS | HR_MEMORY_EVENTS)) {
    css = css_of(cgrp, memory_cgrp_id);
    if (css) valid |= fill_memory(r, self, css_as(css, struct mem_cgroup), is_root, direct);
  }
  if (is_root) return valid;
  if (wanted(HR_THROTTLE | HR_CPU_LIMITS)) {
    css = css_of(cgrp, cpu_cgrp_id);
    if (css) valid |= fill_bandwidth(r, css_as(css, struct task_group), direct);
  }
  if (wanted(HR_PIDS)) {
    css = css_of(cgrp, pids_cgrp_id);
    if (css) valid |= fill_pids(r, css_as(css, struct pids_cgroup), direct);
  }
  if (wanted(HR_IO)) {
    css = css_of(cgrp, io_cgrp_id);
    if (css) valid |= fill_io(r, css_as(css, struct blkcg), direct);
  }
  return valid;
}

/* Every field from `first` to `last`. */
#define invalidate_fields(r, first, last) \
  __builtin_memset(&(r)->first, 0xff, (char*)(&(r)->last + 1) - (char*)&(r)->first)

/* What an earlier pass left there in these groups is not this cgroup's. */
static __always_inline void invalidate(struct hr_record* r, hr_u32 groups) {
  if (groups & HR_MEMORY_USAGE) invalidate_fields(r, memory_usage, swap_usage);
  if (groups & HR_MEMORY_STAT) {
    invalidate_fields(r, anon, shmem_thp);
    r->swapcached = HR_UNKNOWN;
  }
  if (groups & HR_RECLAIM) invalidate_fields(r, refault_anon, pgmajfault);
  if (groups & HR_MEMORY_LIMITS) invalidate_fields(r, memory_min, swap_max);
  if (groups & HR_MEMORY_EVENTS) invalidate_fields(r, events_low, events_oom_kill);
  if (groups & HR_CPU) invalidate_fields(r, cpu_usage_ns, cpu_system_ns);
  if (groups & HR_THROTTLE) invalidate_fields(r, nr_periods, burst_ns);
  if (groups & HR_CPU_LIMITS) invalidate_fields(r, cpu_weight, cpu_period_us);
  if (groups & HR_PSI) invalidate_fields(r, psi_ns, psi_ns);
  if (groups & HR_PIDS) invalidate_fields(r, pids_current, pids_max);
  if (groups & HR_IO) invalidate_fields(r, io_rbytes, io_wios);
}
