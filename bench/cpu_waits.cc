// SPDX-License-Identifier: Apache-2.0
// cpu_waits: what a window of CPU waits by cause costs the loop in user space, without a kernel to
// read from.
//
//   cpu_waits [--pods 1000] [--windows 50] [--cpus 64] [--out FILE]
//
// Each pod is a cgroup with two containers. Printed for three nodes: no pod waits, one in ten waits
// and every pod waits; a window ends every five seconds. FILE is a list of {pods, cpus, waiting:
// one in so many, microseconds: of a window}.
#include "judge/waits/cpu_wait_accounts.h"

#include <headroom/cgroup_record.h>

#include <time.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace headroom;

struct Node {
  std::vector<hr_record> records;
  std::vector<PodReading> pods;
  CpuTimes cpus;
};

hr_record record_of(std::uint64_t id, std::uint64_t parent) {
  hr_record record = unknown_record(id, parent);
  record.valid = HR_PSI | HR_CPU | HR_THROTTLE | HR_CPU_LIMITS;
  record.psi_ns[HR_PSI_CPU][HR_PSI_SOME] = record.cpu_usage_ns = record.throttled_ns = 0;
  record.nr_throttled = 0;
  record.cpu_weight = 100;
  return record;
}

Node make_node(unsigned pods, unsigned cpus) {
  Node node;
  node.records = {record_of(1, 0), record_of(2, 1)};
  for (std::uint64_t i = 0; i < pods; ++i) {
    const std::uint64_t id = 10 + 3 * i;
    node.records.push_back(record_of(id, 2));
    node.records.push_back(record_of(id + 1, id));
    node.records.push_back(record_of(id + 2, id));
    node.pods.push_back(
        {.pod = std::make_shared<Pod>(), .cgroup = CgroupId{id}, .memory_request = {}});
  }
  node.cpus.resize(cpus, CpuTime{});
  return node;
}

// Five seconds pass; one pod in `waiting` waits, 0: none.
void pass_time(Node& node, unsigned waiting) {
  for (auto& cpu : node.cpus) {
    cpu->idle += 500'000'000;
    cpu->tasks += 4'500'000'000;
  }
  for (std::size_t i = 2; i < node.records.size(); ++i) {
    hr_record& record = node.records[i];
    record.cpu_usage_ns += 1'000'000 * (i % 7);
    if (waiting && (i / 3) % waiting == 0)
      record.psi_ns[HR_PSI_CPU][HR_PSI_SOME] += 400'000'000 + 1'000'000 * (i % 5);
  }
}

// Of this thread: what else runs does not count.
Duration cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

double microseconds_of(unsigned pods, unsigned cpus, unsigned windows, unsigned waiting) {
  Node node = make_node(pods, cpus);
  const CpuSet all = CpuSet::range(0, static_cast<Cpu>(cpus) - 1);
  const std::optional<ByCgroup<hr_throttles>> none;
  CpuWaitAccounts accounts;
  Instant at{Duration(1)};
  Duration spent{0};
  for (unsigned i = 0; i <= windows; ++i) {
    pass_time(node, waiting);
    at += CpuWaitAccounts::kWindow;
    const Duration begun = cpu_time();
    accounts.update({.at = at,
                     .records = node.records,
                     .pods = node.pods,
                     .cpus = node.cpus,
                     .throttles = none},
                    [&](CgroupId) { return &all; });
    if (i > 0) spent += cpu_time() - begun;
  }
  return std::chrono::duration<double, std::micro>(spent).count() / windows;
}

}  // namespace

int main(int count, char** arguments) {
  unsigned pods = 1000, windows = 50, cpus = 64;
  std::string out, rows;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string argument = arguments[i];
    if (argument == "--out")
      out = arguments[i + 1];
    else
      (argument == "--pods"   ? pods
       : argument == "--cpus" ? cpus
                              : windows) = static_cast<unsigned>(std::stoul(arguments[i + 1]));
  }
  for (const unsigned waiting : {0u, 10u, 1u}) {
    const double us = microseconds_of(pods, cpus, windows, waiting);
    std::printf("%u pods, %u CPUs, %s: %.0f us a window, %.4f %% of a CPU\n", pods, cpus,
                waiting == 0   ? "no pod waits"
                : waiting == 1 ? "every pod waits"
                               : "one pod in ten waits",
                us, us / 5e6 * 100);
    rows += (rows.empty() ? "" : ",\n ") + ("{\"pods\": " + std::to_string(pods)) +
            ", \"cpus\": " + std::to_string(cpus) + ", \"waiting\": " + std::to_string(waiting) +
            ", \"microseconds\": " + std::to_string(us) + "}";
  }
  if (!out.empty()) std::ofstream(out) << "[" << rows << "]\n";
  return 0;
}
