/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sweep: the state of every cgroup, in one pre-order pass of the cgroup iterator, one hr_record
 * each, written to an array that user space maps. What a record is made of is in
 * sweep_record.bpf.h.
 *
 * The records go to a map because the iterator's own output ends at 32 KiB and cannot resume
 * (6.1 to 7.2: EOPNOTSUPP on the second read). Counters are not of one instant, each is as of its
 * load. Before 6.10 the pass holds cgroup_mutex; since then it holds the RCU read lock alone.
 *
 * Most cgroups of a dense node are idle, so a load whose answer follows from another one is left
 * out: a cgroup that was never throttled has no throttled time, one that was never scanned has no
 * reclaimed pages. A record is written once: nothing is cleared first; fields that a pass does not
 * know are cleared at its end. An idle cgroup's record is read whole only in one of several passes.
 * To see that it is idle, a pass reads one page of its state (that of its struct cgroup), where the
 * whole record reads ten: at thousands of cgroups the pages cost more than the instructions. Before
 * a decision, a pass also compares the memory counters: what ranking uses is then current, and the
 * rest of the record is a few passes old. Where the kernel says which cgroups were updated, a pass
 * reads no other one's state at all (updated.bpf.h).
 */
#include "sweep_idle.bpf.h"
#include "sweep_record.bpf.h"
#include "updated.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- once, at the top of a pass -------------------------------------------------------------- */

static __always_inline void flush_memory(struct cgroup* cgrp) {
  if (!has(HR_KFUNC_MEMCG)) return; /* css_rstat_flush() takes no pointer that was only walked to */
  struct mem_cgroup* memcg = bpf_get_mem_cgroup(&cgrp->self);
  if (!memcg) return;
  /* The kernel's own flushes only what is more than 64 changes for each CPU. */
  if (has(HR_KFUNC_CSS_FLUSH))
    css_rstat_flush(&memcg->css);
  else
    bpf_mem_cgroup_flush_stats(memcg);
  bpf_put_mem_cgroup(memcg);
  pass.flushed |= HR_MEMORY_STAT | HR_RECLAIM;
}

static __always_inline void flush(struct cgroup* cgrp) {
  pass.flushed = 0;
  if (has(HR_KFUNC_CGROUP_FLUSH)) {
    if (!wanted(HR_CPU | HR_MEMORY_STAT | HR_RECLAIM | HR_IO)) return;
    cgroup_rstat_flush(cgrp);
    pass.flushed = HR_CPU | HR_MEMORY_STAT | HR_RECLAIM | HR_IO;
    return;
  }
  if (has(HR_KFUNC_CSS_FLUSH) && wanted(HR_CPU)) {
    css_rstat_flush(&cgrp->self);
    pass.flushed |= HR_CPU;
  }
  if (wanted(HR_MEMORY_STAT | HR_RECLAIM)) flush_memory(cgrp);
}

static __always_inline void forget_old_seconds(struct hr_update_bits* bits) {
  for (int i = 0; i <= HR_ACTIVE_SECONDS; ++i)
    if (pass.forget & (1U << i)) bits->active[i] = 0;
}

/* False: there is no room for its record. */
static __always_inline int visit(struct cgroup_subsys_state* self, hr_u32 index) {
  struct cgroup* cgrp = self->cgroup;
  struct hr_change_stamp* stamp = bpf_map_lookup_elem(&change_stamps, &index);
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  struct hr_update_bits* bits = bits_of(index);
  if (!r || !stamp || !bits) return 0;
  visited_number = index;
  pass.visited++;

  const int direct = has(HR_KFUNC_RDONLY_CAST);
  struct cgroup_subsys_state* parent = cgrp->self.parent;
  int is_root = !parent;
  /* The root's CPU time is not kept in its cgroup: it never seems to move. */
  int idle = pass.mask && !is_root && stamp->serial == cgrp->self.serial_nr &&
             is_idle(stamp, r, cgrp) &&
             !(pass.compare_usage &&
               (direct ? ranking_inputs_changed(r, cgrp, 1) : ranking_inputs_changed(r, cgrp, 0)));
  if (!idle) bits->active[pass.second & HR_ACTIVE_SECONDS] |= bit_of(index);
  if (idle && (index & pass.mask) != pass.share) {
    pass.idle_skipped++;
    return 1;
  }
  /* Before the record: what happens from here on the next pass finds. */
  update_change_stamp(stamp, bits, cgrp);

  r->id = cgrp->kn->id;
  r->populated = stamp->populated;
  r->parent_id = 0;
  if (!is_root) r->parent_id = parent->cgroup->kn->id;

  hr_u32 valid =
      direct ? fill_controllers(r, self, is_root, 1) : fill_controllers(r, self, is_root, 0);
  /* The root's CPU time and pressure are the machine's, kept elsewhere (kcpustat, psi_system). */
  if (!is_root && wanted(HR_CPU)) valid |= fill_cpu(r, cgrp);
  if (!is_root && wanted(HR_PSI)) valid |= fill_psi(r, cgrp);
  r->valid = valid;
  if (valid != (1u << HR_GROUPS) - 1) invalidate(r, ~valid);
  return 1;
}

/* The next cgroup of a walk through the tree. */
static __always_inline void visit_in_order(struct cgroup_subsys_state* self) {
  hr_u32 index = pass.next;
  struct hr_update_bits* bits = bits_of(index);
  if (bits && (index & 63) == 0) forget_old_seconds(bits);
  if (visit(self, index))
    pass.next = index + 1;
  else
    pass.lost++;
}

/* --- a pass with cgroup_mutex: the iterator's, for kernels before 6.10 --- */

SEC("iter.s/cgroup")
int sweep(struct bpf_iter__cgroup* ctx) {
  struct cgroup* cgrp = ctx->cgroup;
  if (!cgrp) return 0; /* the call after the last one */
  if (pass.next == 0) flush(cgrp);
  visit_in_order(&cgrp->self);
  return 0;
}

/* --- a pass without it, since 6.10 --- */

/*
 * The same walk by a program that user space calls: the RCU read lock is all it holds, and nothing
 * is allocated. An attach holds cgroup_mutex for an RCU grace period, a mkdir while it allocates;
 * neither is waited for, and neither waits for a pass. A call visits so many cgroups at most,
 * because it keeps its CPU from other tasks; the next one goes on behind the last cgroup of the one
 * before, which it finds by its serial number: the kernel keeps siblings in the order they were
 * made. A cgroup that is made in between, further in front, is found by the next pass.
 */
hr_u64 walk_top;         /* id of the cgroup whose tree is walked; user space sets it once */
hr_u64 walk_last_serial; /* of the last cgroup visited */
hr_u32 walk_found;       /* this call has reached that cgroup; user space sets 1 to begin a pass */
hr_u32 walk_left;        /* cgroups that this call may still visit; user space sets it */
hr_u32 walk_top_found;   /* results of a call: 0, this program may not know that cgroup; */
hr_u32 walk_more;        /* and 1, call again */

/* Not inlined, and not static: the verifier reads it once, whatever calls it in a loop. */
__attribute__((noinline)) int visit_next(struct cgroup_subsys_state* css __arg_trusted) {
  if (!walk_found) {
    walk_found = css->serial_nr == walk_last_serial;
    return 0;
  }
  if (!walk_left) return 1;
  walk_left--;
  walk_last_serial = css->serial_nr;
  if (css->flags & CSS_ONLINE) visit_in_order(css); /* a dead one may still have its place */
  return 0;
}

/* The root of the tree, or of the mount: a daemon in a namespace of its own gets no other by id. */
static __always_inline struct cgroup* get_top(void) {
  struct cgroup* top = bpf_cgroup_from_id(walk_top);
  if (top) return top;
  struct task_struct* task = bpf_get_current_task_btf();
  struct cgroup* own = task->cgroups->dfl_cgrp;
  if (!own) return 0;
  top = bpf_cgroup_ancestor(own, 0);
  if (!top) return 0;
  if (top->kn->id == walk_top) return top;
  bpf_cgroup_release(top);
  return 0;
}

SEC("syscall")
int sweep_call(void* ctx) {
  int more = 0;
  bpf_rcu_read_lock();
  struct cgroup* top = get_top();
  walk_top_found = top != 0;
  if (!top) {
    bpf_rcu_read_unlock();
    return 0;
  }
  struct bpf_iter_css tree;
  struct cgroup_subsys_state* css;
  bpf_iter_css_new(&tree, &top->self, DESCENDANTS_PRE);
  while (!more && (css = bpf_iter_css_next(&tree)))
    more = visit_next(css);
  bpf_iter_css_destroy(&tree);
  bpf_rcu_read_unlock();
  bpf_cgroup_release(top);
  walk_more = more;
  return 0;
}

/* --- a pass over the updated cgroups, where the tree is as in the pass before --- */

hr_u64 turn_bits;    /* of 64 records, those whose turn it is; user space sets it */
hr_u32 updated_from; /* where the call begins, in 64 records; user space sets 0 to begin a pass */
hr_u32 unnumbered;   /* result of sweep_number: how many still do not hold their numbers */

/* Of the records from at * 64 on, those that there are. */
static __always_inline hr_u64 existing_bits(hr_u32 at) {
  hr_u32 left = pass.next - at * 64;
  return left >= 64 ? ~0ULL : (1ULL << (left & 63)) - 1;
}

/* Not found: it was removed, and the next pass walks through the tree. */
__attribute__((noinline)) int visit_numbered(hr_u32 index) {
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  if (!r) return 0;
  if (walk_left) walk_left--;
  bpf_rcu_read_lock();
  struct cgroup* cgrp = index ? bpf_cgroup_from_id(r->id) : get_top();
  if (cgrp) {
    visit(&cgrp->self, index);
    bpf_cgroup_release(cgrp);
  }
  bpf_rcu_read_unlock();
  return 0;
}

static long visit_updated_of_64(hr_u64 unused, void* context) {
  hr_u32 at = updated_from;
  struct hr_update_bits* bits = bpf_map_lookup_elem(&update_bits, &at);
  if (!bits || at * 64 >= pass.next || !walk_left) return 1;
  updated_from = at + 1;
  forget_old_seconds(bits);
  hr_u64 due = turn_bits | (at == 0); /* the root is always visited */
  for (int i = 0; i <= HR_ACTIVE_SECONDS; ++i)
    due |= bits->active[i];
  due |= __sync_lock_test_and_set(&bits->updated, 0);
  due &= existing_bits(at);
  for (int i = 0; i < 64; ++i)
    if (due & (1ULL << i)) visit_numbered(at * 64 + i);
  return 0;
}

SEC("syscall")
int sweep_updated(void* ctx) {
  bpf_loop(1 << 20, visit_updated_of_64, 0, 0);
  walk_more = updated_from * 64 < pass.next;
  return 0;
}

/* So that mark_updated() finds it. */
__attribute__((noinline)) int number(hr_u32 index) {
  struct hr_record* r = bpf_map_lookup_elem(&records, &index);
  struct hr_update_bits* bits = bits_of(index);
  if (!r || !bits) return 0;
  if (!walk_left) {
    unnumbered++;
    return 0;
  }
  walk_left--;
  struct cgroup* cgrp = bpf_cgroup_from_id(r->id);
  hr_u32* kept = cgrp ? bpf_cgrp_storage_get(&numbers, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
  if (kept) {
    *kept = index;
    bits->numbered |= bit_of(index);
  } else {
    unnumbered++;
  }
  if (cgrp) bpf_cgroup_release(cgrp);
  return 0;
}

static long number_64(hr_u64 unused, void* context) {
  hr_u32 at = updated_from;
  struct hr_update_bits* bits = bpf_map_lookup_elem(&update_bits, &at);
  if (!bits || at * 64 >= pass.next) return 1;
  updated_from = at + 1;
  if (at == 0) bits->numbered |= 1; /* the root needs none */
  hr_u64 due = ~bits->numbered & existing_bits(at);
  for (int i = 0; i < 64; ++i)
    if (due & (1ULL << i)) number(at * 64 + i);
  return 0;
}

SEC("syscall")
int sweep_number(void* ctx) {
  unnumbered = 0;
  bpf_loop(1 << 20, number_64, 0, 0);
  return 0;
}

/*
 * The root's memory.stat after a sweep_flush for which user space set root_wanted; valid has
 * HR_MEMORY_STAT, or nothing is known of it.
 */
struct hr_record flushed_root;
hr_u32 root_wanted;

static __always_inline void read_flushed_root(struct cgroup* top) {
  struct cgroup_subsys_state* css = css_of(top, memory_cgrp_id);
  flushed_root.valid = 0;
  if (css && has(HR_KFUNC_RDONLY_CAST) && (pass.flushed & HR_MEMORY_STAT))
    flushed_root.valid =
        fill_memory(&flushed_root, &top->self, css_as(css, struct mem_cgroup), 1, 1);
}

/*
 * What brings the counters up to date for it: the kernel lets no program that is called flush. The
 * iterator over tasks runs this for one task, the caller. It returns 1, "the same object again"
 * (bpf_iter_run_prog()): each read of one open iterator runs it, and the kernel allocates its
 * buffer of 32 KiB once, not when memory is short. What memory.stat would say then is read here:
 * the kernel allocates the file's text.
 */
SEC("iter.s/task")
int sweep_flush(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;           /* the call after the last one */
  asm volatile("" : "+r"(task)); /* read again, it could be null to the verifier */
  struct cgroup* top = bpf_cgroup_from_id(walk_top);
  if (!top) {
    bpf_rcu_read_lock();
    struct cgroup* own = task->cgroups->dfl_cgrp;
    if (own) top = bpf_cgroup_ancestor(own, 0);
    bpf_rcu_read_unlock();
  }
  if (!top) return 1;
  flush(top);
  if (root_wanted) read_flushed_root(top);
  bpf_cgroup_release(top);
  return 1;
}

/*
 * The same where a program can look no cgroup up (bpf_cgroup_from_id()): the root of the tree in
 * which the caller is. It is never freed, so it needs no reference.
 */
SEC("iter.s/task")
int sweep_flush_own(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0;
  struct css_set* set = task->cgroups;
  struct cgroup* own = set ? set->dfl_cgrp : 0;
  struct cgroup_root* root = own ? own->root : 0;
  if (!root) return 1;
  flush(&root->cgrp);
  if (root_wanted) read_flushed_root(&root->cgrp);
  return 1;
}
