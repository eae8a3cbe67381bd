/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a cgroup has done nothing since its record was read whole. */
#pragma once

#include "sweep_record.bpf.h"
#include "updated.bpf.h"

/* Its usage or its working set: another cgroup's reclaim can change both. */
static __always_inline int ranking_inputs_changed(const struct hr_record* r, struct cgroup* cgrp,
                                                  const int direct) {
  if (wanted(HR_MEMORY_USAGE | HR_MEMORY_STAT)) {
    struct cgroup_subsys_state* css = css_of(cgrp, memory_cgrp_id);
    if (css ? memory_changed(r, css_as(css, struct mem_cgroup), direct)
            : r->valid & HR_MEMORY_USAGE)
      return 1;
  }
  return 0;
}

static __always_inline hr_u64 cpu_time(struct cgroup* cgrp) {
  return cgrp->bstat.cputime.sum_exec_runtime;
}

/*
 * A cgroup that took no CPU time neither charged a page nor woke. But it may have waited: tasks
 * that get no CPU take none, and the kernel adds a wait to psi_group.total up to 2 s after it
 * ended.
 */
static __always_inline int is_idle(const struct hr_change_stamp* stamp, const struct hr_record* r,
                                   struct cgroup* cgrp) {
  return wanted(HR_CPU) && stamp->cpu_ns == cpu_time(cgrp) && stamp->populated == populated(cgrp) &&
         !(wanted(HR_PSI) && pressure_changed(r, cgrp));
}

static __always_inline void update_change_stamp(struct hr_change_stamp* stamp,
                                                struct hr_update_bits* bits, struct cgroup* cgrp) {
  if (stamp->serial != cgrp->self.serial_nr) {
    stamp->serial = cgrp->self.serial_nr;
    bits->numbered &= ~bit_of(visited_number);
    pass.reassigned++;
  }
  stamp->cpu_ns = cpu_time(cgrp);
  stamp->populated = populated(cgrp);
  stamp->pass = pass.number;
}
