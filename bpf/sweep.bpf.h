/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the sweep share: its configuration and results, the records, the kernel's
 * functions, and how a field of the kernel is read.
 *
 * Loads are plain BTF loads, a few instructions each, where the verifier knows the type. A
 * controller's state is reached from its css, and that step is a cast: bpf_rdonly_cast() makes it
 * free since 6.2; on 6.1 the fields behind it are read by bpf_probe_read_kernel(), ~10 ns each.
 */
#pragma once

#include "kernel.bpf.h"

#include <headroom/bpf/abi.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

const volatile struct hr_sweep_config config;
struct hr_sweep_pass pass;
/* The running number of the cgroup that is being visited. */
static hr_u32 visited_number;

/* running number → record; user space sets max_entries before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_record);
} records SEC(".maps");

/* running number → what is kept of it to tell whether it moved; as many as there are records. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct hr_change_stamp);
} change_stamps SEC(".maps");

/* Weak: a call to a missing one is poisoned, and config.kfuncs keeps it from being reached. The
 * first is declared as bpf_core_read.h of libbpf 1.4 does. */
extern void* bpf_rdonly_cast(const void* obj, __u32 btf_id) __ksym __weak;
/* Flushes every subsystem's rstat of the tree below. */
extern void cgroup_rstat_flush(struct cgroup* cgrp) __ksym __weak;
/* Its successor flushes one subsystem; the cgroup's own css stands for CPU time. */
extern void css_rstat_flush(struct cgroup_subsys_state* css) __ksym __weak;
extern struct mem_cgroup* bpf_get_mem_cgroup(struct cgroup_subsys_state* css) __ksym __weak;
extern void bpf_put_mem_cgroup(struct mem_cgroup* memcg) __ksym __weak;
extern unsigned long bpf_mem_cgroup_page_state(struct mem_cgroup* memcg, int idx) __ksym __weak;
extern unsigned long bpf_mem_cgroup_vm_events(struct mem_cgroup* memcg,
                                              enum vm_event_item event) __ksym __weak;
extern void bpf_mem_cgroup_flush_stats(struct mem_cgroup* memcg) __ksym __weak;
extern int bpf_iter_css_new(struct bpf_iter_css* it, struct cgroup_subsys_state* start,
                            unsigned int flags) __ksym __weak;
extern struct cgroup_subsys_state* bpf_iter_css_next(struct bpf_iter_css* it) __ksym __weak;
extern void bpf_iter_css_destroy(struct bpf_iter_css* it) __ksym __weak;
extern struct cgroup* bpf_cgroup_from_id(__u64 id) __ksym __weak;
extern struct cgroup* bpf_cgroup_ancestor(struct cgroup* cgrp, int level) __ksym __weak;
extern void bpf_cgroup_release(struct cgroup* cgrp) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
#ifndef __arg_trusted
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#endif
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define DESCENDANTS_PRE 2 /* BPF_CGROUP_ITER_DESCENDANTS_PRE */

#define wanted(group) (config.groups & (group))
#define has(kfunc) (config.kfuncs & (kfunc))

/* The css as its controller's own type. */
#define css_as(css, type) \
  ((type*)(has(HR_KFUNC_RDONLY_CAST) ? bpf_rdonly_cast(css, bpf_core_type_id_kernel(type)) : (css)))

/*
 * One field behind a css_as() pointer. `direct` is constant in each copy of the function that
 * reads; kept apart, the two ways do not share an address computed beforehand, and a direct read is
 * one load instruction.
 */
#define read(place)                                                                                \
  ({                                                                                               \
    typeof(place) got_;                                                                            \
    if (direct) {                                                                                  \
      got_ = (place);                                                                              \
    } else {                                                                                       \
      typeof(place) probed_ = 0;                                                                   \
      bpf_probe_read_kernel(&probed_, sizeof(probed_), __builtin_preserve_access_index(&(place))); \
      got_ = probed_;                                                                              \
    }                                                                                              \
    got_;                                                                                          \
  })

/* A counter summed over CPUs can be briefly negative; the files print 0 then. */
static __always_inline hr_u64 bytes(long pages, hr_u32 shift) {
  return pages < 0 ? 0 : (hr_u64)pages << shift;
}

/* PAGE_COUNTER_MAX is what the files print as "max". */
static __always_inline hr_u64 limit_bytes(unsigned long pages, hr_u32 shift) {
  return pages >= 0x7fffffffffffffffUL >> shift ? HR_NO_LIMIT : (hr_u64)pages << shift;
}

/* The cgroup's state for one controller; null where it is not enabled, or not built in. */
#define css_of(cgrp, name)                                                \
  (bpf_core_enum_value_exists(enum cgroup_subsys_id, name)                \
       ? (cgrp)->subsys[bpf_core_enum_value(enum cgroup_subsys_id, name)] \
       : (void*)0)
