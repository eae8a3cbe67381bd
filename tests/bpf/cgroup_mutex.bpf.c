/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holds the kernel's cgroup_mutex, as an attach does that waits for an RCU grace period: the cgroup
 * iterator takes it for as long as a reader reads (cgroup_iter_seq_start(), Linux 6.1), and this
 * program sleeps until user space gives the page that it reads.
 */
#include "kernel.bpf.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 missing_page;

SEC("iter.s/cgroup")
int hold(struct bpf_iter__cgroup* ctx) {
  char byte;
  if (ctx->cgroup) bpf_copy_from_user(&byte, sizeof(byte), (void*)missing_page);
  return 0;
}
