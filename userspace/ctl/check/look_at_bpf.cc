// SPDX-License-Identifier: Apache-2.0
// BPF by trying: each program is loaded as the daemon loads it, and let go.
#include "ctl/check/look.h"
#include "observe/best_source.h"
#include "observe/kernel_facts.h"
#include "observe/lifecycle_watch.h"
#include "observe/memory_guard.h"
#include "observe/wait_watch.h"

namespace headroom::ctl::check {
namespace {

const observe::LogLine kSilent = [](std::string_view) {};

Result<Readings> try_sweep(const observe::CgroupRoot& root) {
  auto source = observe::BestSource::open({.root = root.mount, .log = kSilent});
  if (!source) return tl::make_unexpected(source.error());
  auto records = (*source)->sweep();
  if (!records) return tl::make_unexpected(records.error());
  return Readings{.bpf = (*source)->bpf() != nullptr,
                  .sources = (*source)->provenance(),
                  .reasons = (*source)->reasons(),
                  .cgroups = records->size()};
}

template <class Watch>
Program program(std::string name, const Result<std::unique_ptr<Watch>>& watch) {
  Program tried{std::move(name), {}, {}};
  if (!watch) {
    tried.loaded = tl::make_unexpected(watch.error());
    return tried;
  }
  if constexpr (requires { (*watch)->left_out(); })
    for (const observe::LeftOut& each : (*watch)->left_out())
      tried.left_out.push_back(each.program + ": " + each.why);
  return tried;
}

}  // namespace

void look_at_bpf(Facts& facts) {
  if (!facts.root || !facts.cgroups.refusal.empty()) {
    const char* why = facts.root ? "not tried without cgroup v2" : "not tried: needs root";
    facts.kfuncs = failure(why);
    facts.readings = failure(why);
    facts.programs = failure(why);
    return;
  }
  facts.kfuncs = observe::kernel_facts().kfuncs;
  facts.readings = try_sweep(facts.cgroups);
  const observe::WaitOptions waits{.log = kSilent};
  facts.programs->push_back(program("stall", observe::watch_stalls(waits)));
  facts.programs->push_back(program("throttle", observe::watch_throttles(waits)));
  facts.programs->push_back(
      program("guard", observe::MemoryGuard::open({.sys = "/sys", .log = kSilent})));
  facts.programs->push_back(program(
      "lifecycle", observe::LifecycleWatch::open({.log = kSilent}, [](const hr_event&) {})));
}

}  // namespace headroom::ctl::check
