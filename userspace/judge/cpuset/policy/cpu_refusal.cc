// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/policy/cpu_refusal.h"

#include <headroom/quantity.h>

namespace headroom {
namespace {

struct ReasonOf {
  std::string_view operator()(const SmtAlignmentError&) const { return "SMTAlignmentError"; }
  std::string_view operator()(const TopologyAffinityError&) const {
    return "TopologyAffinityError";
  }
  std::string_view operator()(const NotEnoughCpus&) const { return "UnexpectedAdmissionError"; }
  std::string_view operator()(const SharedPoolError&) const { return "SharedPoolError"; }
};

struct MessageOf {
  std::string operator()(const SmtAlignmentError& error) const {
    const std::string requested = std::to_string(error.requested);
    const std::string per_core = std::to_string(error.cpus_per_core);
    if (!error.available)
      return "SMT Alignment Error: requested " + requested +
             " cpus not multiple cpus per core = " + per_core;
    return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
           std::to_string(*error.available) + ", requested CPUs = " + requested +
           ", CPUs per core = " + per_core;
  }
  std::string operator()(const TopologyAffinityError&) const {
    return "Resources cannot be allocated with Topology locality";
  }
  std::string operator()(const NotEnoughCpus& error) const { return error.message(); }
  std::string operator()(const SharedPoolError& error) const {
    const auto text = [](MilliCpu cpu) { return Quantity::of_milli(cpu.count).canonical(); };
    return "Shared Pool Error: requested CPUs = " + std::to_string(error.requested) +
           ", the shared pool would be left with = " + text(error.left) +
           ", its pods requested = " + text(error.needed);
  }
};

}  // namespace

std::string_view reason(const CpuRefusal& refusal) {
  return std::visit(ReasonOf{}, refusal);
}

std::string message(const CpuRefusal& refusal) {
  return std::visit(MessageOf{}, refusal);
}

}  // namespace headroom
