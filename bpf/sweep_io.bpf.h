/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sum of a cgroup's block devices. */
#pragma once

#include "sweep.bpf.h"

/* Block devices that are read for one cgroup, at most. */
const volatile hr_u32 io_devices = 256;
/*
 * Records of this pass that are without io because their cgroup has used more devices: how many,
 * and the running numbers of the first of them. User space clears the count before a pass.
 */
#define HR_INCOMPLETE_IO 64
hr_u32 incomplete_io_count;
hr_u32 incomplete_io[HR_INCOMPLETE_IO];

static __always_inline void note_incomplete_io(void) {
  hr_u32 at = incomplete_io_count++;
  if (at < HR_INCOMPLETE_IO) incomplete_io[at & (HR_INCOMPLETE_IO - 1)] = visited_number;
}

/*
 * Device mapper's disks are "dm-0", ... (alloc_dev(), drivers/md/dm.c), md's "md0", "md_d0" or
 * "md_home" (md_alloc(), drivers/md/md.c).
 */
static __always_inline int is_stacked(struct blkcg_gq* blkg) {
  if (!bpf_core_field_exists(struct request_queue, disk)) return 0;
  struct gendisk* disk = BPF_CORE_READ(blkg, q, disk);
  char name[4] = {};
  bpf_probe_read_kernel(name, sizeof(name), __builtin_preserve_access_index(&disk->disk_name));
  if (name[0] == 'd') return name[1] == 'm' && name[2] == '-';
  if (name[0] != 'm' || name[1] != 'd') return 0;
  return name[2] == '_' || (name[2] >= '0' && name[2] <= '9');
}

struct io_sum {
  struct hlist_node* next;
  hr_u64 rbytes, wbytes, rios, wios;
};

/* For bpf_loop(): the verifier reads it once, and a loop as often as it may run. */
static long add_device(hr_u64 index, struct io_sum* sum) {
  struct hlist_node* node = sum->next;
  struct blkcg_gq* blkg = (void*)((__u64)node - bpf_core_field_offset(struct blkcg_gq, blkcg_node));
  struct blkg_iostat now = {};
  if (!is_stacked(blkg))
    bpf_probe_read_kernel(&now, sizeof(now), __builtin_preserve_access_index(&blkg->iostat.cur));
  sum->rbytes += now.bytes[0];
  sum->wbytes += now.bytes[1];
  sum->rios += now.ios[0];
  sum->wios += now.ios[1];
  struct hlist_node* next = 0;
  bpf_probe_read_kernel(&next, sizeof(next), __builtin_preserve_access_index(&node->next));
  sum->next = next;
  return !next;
}

/*
 * All devices together, as io.stat lists them, but those made of others (device mapper, md): what
 * passes through them is counted for the others as well.
 */
static __always_inline hr_u32 fill_io(struct hr_record* r, struct blkcg* blkcg, const int direct) {
  if (!bpf_core_field_exists(blkcg->blkg_list)) return 0;
  struct io_sum sum = {.next = read(blkcg->blkg_list.first)};
  if (sum.next) bpf_loop(io_devices, add_device, &sum, 0);
  if (sum.next) {
    note_incomplete_io();
    return 0;
  }
  r->io_rbytes = sum.rbytes;
  r->io_wbytes = sum.wbytes;
  r->io_rios = sum.rios;
  r->io_wios = sum.wios;
  return HR_IO;
}
