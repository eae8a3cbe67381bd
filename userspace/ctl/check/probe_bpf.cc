// SPDX-License-Identifier: Apache-2.0
// Probes BPF: each program is loaded as the daemon loads it, and unloaded again.
#include "ctl/check/probe_host.h"
#include "observe/best_source.h"
#include "observe/bpf/kernel_facts.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/bpf/memory_guard.h"
#include "observe/bpf/wait_watch.h"

namespace headroom::ctl::check {
namespace {

const observe::LogLine kSilent = [](std::string_view) {};

Result<SweepFacts> try_sweep(const observe::CgroupRoot& root) {
  auto source = observe::BestSource::open({.root = root.mount, .log = kSilent});
  if (!source) return tl::make_unexpected(source.error());
  auto records = (*source)->sweep();
  if (!records) return tl::make_unexpected(records.error());
  return SweepFacts{.bpf = (*source)->bpf() != nullptr,
                    .sources = (*source)->group_sources(),
                    .source_notes = (*source)->source_notes(),
                    .cgroups = records->size()};
}

template <class Watch>
ProgramFacts program(std::string name, const Result<std::unique_ptr<Watch>>& watch) {
  ProgramFacts result{std::move(name), {}, {}};
  if (!watch) {
    result.loaded = tl::make_unexpected(watch.error());
    return result;
  }
  if constexpr (requires { (*watch)->skipped_programs(); })
    for (const observe::SkippedProgram& each : (*watch)->skipped_programs())
      result.skipped_programs.push_back(each.program + ": " + each.why);
  return result;
}

}  // namespace

void probe_bpf(HostFacts& facts) {
  if (!facts.root || !facts.cgroups.unsupported_reason.empty()) {
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
