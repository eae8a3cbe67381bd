// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/cgroup_sources.h"

#include "base/log/journal.h"

#include <string>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::daemon {
namespace {

using config::BpfUse;

constexpr auto kLibbpfLog = [](std::string_view line) { log::debug("libbpf: {}", line); };

void log_skipped_programs(std::string_view what,
                          const std::vector<observe::SkippedProgram>& skipped_programs) {
  for (const observe::SkippedProgram& each : skipped_programs)
    log::warning("{}: not all is seen: {}: {}", what, each.program, each.why);
}

// Where nothing at all can be loaded that was said already, in one line.
log::Level level_of(BpfUse bpf, const observe::BestSource& source) {
  return source.bpf() || bpf == BpfUse::kEvents ? log::Level::warn : log::Level::debug;
}

std::unique_ptr<observe::KernelWaits> watch_waits(log::Level level) {
  observe::WaitOptions options;
  options.log = kLibbpfLog;
  auto stalls = observe::watch_stalls(options);
  if (stalls)
    log_skipped_programs("stalls", (*stalls)->skipped_programs());
  else
    log::write(level, stalls.error().what + ": waits for memory and their causes are unknown");
  auto throttles = observe::watch_throttles(options);
  if (!throttles)
    log::write(level,
               throttles.error().what + ": how long the waits for CPU quota are is not known");
  return std::make_unique<observe::KernelWaits>(stalls ? std::move(*stalls) : nullptr,
                                                throttles ? std::move(*throttles) : nullptr);
}

}  // namespace

void log_source(const observe::BestSource& source) {
  const std::string source_notes = fmt::format("{}", fmt::join(source.source_notes(), "; "));
  if (source.bpf())
    log::info("cgroups are read through {} ({})", source.name(), source_notes);
  else
    log::warning("cgroups are read from files ({}): the same decisions at more CPU time",
                 source_notes);
}

Result<ObserveSources> open_sources(const observe::CgroupRoot& root, BpfUse bpf) {
  observe::BestSource::Options options;
  options.root = root.mount;
  options.bpf = bpf == BpfUse::kAll;
  options.log = kLibbpfLog;
  auto source = observe::BestSource::open(options);
  if (!source) return tl::make_unexpected(source.error());
  auto inventory = observe::CgroupInventory::open(root.mount);
  if (!inventory) return tl::make_unexpected(inventory.error());
  log_source(**source);
  auto waits = bpf == BpfUse::kNone ? std::make_unique<observe::KernelWaits>(nullptr, nullptr)
                                    : watch_waits(level_of(bpf, **source));
  return ObserveSources{std::move(*source), std::move(*inventory), std::move(waits)};
}

std::unique_ptr<observe::LifecycleWatch> watch_lifecycle(
    BpfUse bpf, const observe::BestSource& source, observe::LifecycleWatch::OnEvent on_event) {
  if (bpf == BpfUse::kNone) return nullptr;
  auto watch = observe::LifecycleWatch::open({.log = kLibbpfLog}, std::move(on_event));
  if (!watch) {
    log::write(level_of(bpf, source), watch.error().what + ": the next pass finds out");
    return nullptr;
  }
  log_skipped_programs("cgroups' lives", (*watch)->skipped_programs());
  return std::move(*watch);
}

std::unique_ptr<observe::MemoryGuard> guard_memory(BpfUse bpf, const observe::BestSource& source) {
  if (bpf == BpfUse::kNone) return nullptr;
  auto guard = observe::MemoryGuard::open({.log = kLibbpfLog});
  if (guard) return std::move(*guard);
  log::write(level_of(bpf, source), guard.error().what + ": the loop looks in time by itself");
  return nullptr;
}

}  // namespace headroom::daemon
