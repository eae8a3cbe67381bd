/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stat index: where the kernel keeps the items of memory.stat, from its own tables. Run once, by
 * hand.
 *
 * memcg_vmstats.events[] since 6.1 and state[] since 6.11 hold only the items that are kept, and
 * mem_cgroup_events_index[] and mem_cgroup_stats_index[] map one to the other. They are static, in
 * kallsyms where that has data (CONFIG_KALLSYMS_ALL, as in Debian's kernels), and their content
 * depends on the configuration. The kernel looks the name up for us: reading /proc/kallsyms costs
 * a hundred times as much.
 */
#include "kernel.bpf.h"

#include <headroom/bpf/abi.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static const char kStats[] = "mem_cgroup_stats_index";
static const char kEvents[] = "mem_cgroup_events_index";

/* The table's first bytes; user space reads them through the mapping. */
unsigned char table[HR_INDEX_TABLE_BYTES];

SEC("syscall")
int stat_index(struct hr_index_request* ctx) {
  __u64 address = 0;
  long error = ctx->of_events ? bpf_kallsyms_lookup_name(kEvents, sizeof(kEvents), 0, &address)
                              : bpf_kallsyms_lookup_name(kStats, sizeof(kStats), 0, &address);
  hr_u32 wanted = ctx->bytes;
  if (error || !address || wanted > sizeof(table)) return 1;
  return bpf_probe_read_kernel(table, wanted, (const void*)address) != 0;
}
