/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stall times (PSI) of a record. */
#pragma once

#include "sweep.bpf.h"

#define state_of(name) bpf_core_enum_value(enum psi_states, name)
/* Full is part of some. */
#define fill_pair(pair, group, resource)                                                      \
  do {                                                                                        \
    hr_u64 some_ = (group)[state_of(PSI_##resource##_SOME)];                                  \
    (pair)[HR_PSI_SOME] = some_;                                                              \
    (pair)[HR_PSI_FULL] = !bpf_core_enum_value_exists(enum psi_states, PSI_##resource##_FULL) \
                              ? HR_UNKNOWN                                                    \
                          : some_ ? (group)[state_of(PSI_##resource##_FULL)]                  \
                                  : 0;                                                        \
  } while (0)
#define fill_totals(r, group)                          \
  do {                                                 \
    fill_pair((r)->psi_ns[HR_PSI_CPU], group, CPU);    \
    fill_pair((r)->psi_ns[HR_PSI_MEMORY], group, MEM); \
    fill_pair((r)->psi_ns[HR_PSI_IO], group, IO);      \
  } while (0)

/* As old as the group's last averaging, at most 2 s; the files collect at each read. */
static __always_inline hr_u32 fill_psi(struct hr_record* r, struct cgroup* cgrp) {
  struct psi_group* psi = cgrp->psi;
  if (!psi) return 0;
  if (bpf_core_field_exists(psi->enabled) && !psi->enabled) return 0;
  struct psi_group___rows* rows = (void*)psi;
  if (bpf_core_field_exists(psi->total))
    fill_totals(r, psi->total);
  else if (bpf_core_field_exists(rows->total))
    fill_totals(r, rows->total[0]);
  else
    return 0;
  return HR_PSI;
}

static __always_inline int pressure_changed(const struct hr_record* r, struct cgroup* cgrp) {
  struct psi_group* psi = cgrp->psi;
  if (!psi || (bpf_core_field_exists(psi->enabled) && !psi->enabled)) return r->valid & HR_PSI;
  struct psi_group___rows* rows = (void*)psi;
#define some_changed(group)                                                    \
  (r->psi_ns[HR_PSI_CPU][HR_PSI_SOME] != (group)[state_of(PSI_CPU_SOME)] ||    \
   r->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] != (group)[state_of(PSI_MEM_SOME)] || \
   r->psi_ns[HR_PSI_IO][HR_PSI_SOME] != (group)[state_of(PSI_IO_SOME)])
  if (bpf_core_field_exists(psi->total)) return some_changed(psi->total);
  return bpf_core_field_exists(rows->total) && some_changed(rows->total[0]);
}
