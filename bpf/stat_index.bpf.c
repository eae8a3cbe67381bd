/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stat index: where the kernel keeps a memory.stat item in memcg_vmstats.state[], from its own
 * table. Run once, by hand.
 *
 * Since 6.11 state[] holds only the items that are kept, and mem_cgroup_stats_index[] maps one to
 * the other. It is a static array of bytes, in kallsyms where that has data (CONFIG_KALLSYMS_ALL,
 * as in Debian's kernels 6.12 and 7.2), and its content depends on the configuration. The kernel
 * looks the name up for us: reading /proc/kallsyms costs a hundred times as much.
 */
#include "kernel.bpf.h"

#include <headroom/abi.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static const char kTable[] = "mem_cgroup_stats_index";

SEC("syscall")
int stat_index(struct hr_stat_index* ctx) {
  __u64 table = 0;
  long error = bpf_kallsyms_lookup_name(kTable, sizeof(kTable), 0, &table);
  if (error || !table) return 1;
  for (int i = 0; i < HR_STAT_ITEMS; ++i) {
    __u8 entry = 0;
    error = bpf_probe_read_kernel(&entry, 1, (const void*)(table + ctx->items[i]));
    ctx->entries[i] = error ? HR_NO_INDEX : entry;
  }
  return 0;
}
