// SPDX-License-Identifier: Apache-2.0
// parity: whether the BPF sweep says what cgroupfs says on this kernel, under load.
//
//   parity [--looks 5] [--dir /var/tmp] [--libbpf LOG] [--table no]
//
// Makes cgroups that allocate, fill the page cache and tmpfs, burn CPU, run into their quota, their
// memory.high and their memory.max, and compares every cgroup of the machine field by field. Exit 1
// if a field of a cgroup disagrees at two looks, or if a group the host has was never compared.
#include "observe/self_check.h"

#include "observe/best_source.h"
#include "observe/bpf/bpf_sweep.h"
#include "observe/cgroup/cgroup_source.h"
#include "test_cgroup_tree.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <thread>

namespace {

using namespace headroom;

constexpr std::size_t kMiB = 1u << 20;

[[noreturn]] void sleep_forever() {
  for (;;)
    pause();
}

[[noreturn]] void burn_cpu() {
  std::atomic<std::uint64_t> spins = 0;
  for (;;) {
    ++spins;
    if (spins % 4096 == 0) getppid();  // system time too
  }
}

[[noreturn]] void allocate(std::size_t bytes) {
  auto* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; i < bytes; i += 4096)
    memory[i] = 1;
  sleep_forever();
}

[[noreturn]] void fill_file(const std::string& directory, std::size_t bytes) {
  std::string path = directory + "/headroom-parity-XXXXXX";
  const int fd = mkstemp(path.data());
  unlink(path.c_str());
  const std::string block(kMiB, 'x');
  for (std::size_t i = 0; i < bytes; i += kMiB)
    if (write(fd, block.data(), block.size()) < 0) break;
  fsync(fd);
  for (;;) {  // read again and again: some of it becomes active
    std::string back(kMiB, 0);
    for (std::size_t i = 0; i < bytes / 2; i += kMiB)
      if (pread(fd, back.data(), back.size(), static_cast<off_t>(i)) <= 0) break;
    sleep(1);
  }
}

[[noreturn]] void threads(unsigned count) {
  std::vector<std::thread> all;
  for (unsigned i = 0; i < count; ++i)
    all.emplace_back([] { sleep_forever(); });
  sleep_forever();
}

void start_load(bench::TestCgroupTree& tree, const std::string& directory) {
  tree.spawn(tree.make("anon"), [] { allocate(64 * kMiB); });
  tree.spawn(tree.make("file"), [&] { fill_file(directory, 48 * kMiB); });
  tree.spawn(tree.make("shmem"), [] { fill_file("/dev/shm", 24 * kMiB); });
  tree.spawn(tree.make("cpu"), burn_cpu);
  const auto quota = tree.make("quota");
  bench::write_file(quota / "cpu.max", "10000 50000");
  tree.spawn(quota, burn_cpu);
  const auto high = tree.make("high");
  bench::write_file(high / "memory.high", std::to_string(24 * kMiB));
  bench::write_file(high / "memory.min", std::to_string(1 * kMiB));
  bench::write_file(high / "memory.low", std::to_string(2 * kMiB));
  bench::write_file(high / "memory.swap.max", std::to_string(512 * kMiB));
  tree.spawn(high, [&] { fill_file(directory, 64 * kMiB); });
  const auto oom = tree.make("oom");
  bench::write_file(oom / "memory.max", std::to_string(16 * kMiB));
  bench::write_file(oom / "memory.swap.max", "0");
  tree.spawn(oom, [] { allocate(64 * kMiB); });
  tree.spawn(tree.make("tasks"), [] { threads(20); });
  tree.make("empty");
  tree.make("pod", true);
  tree.spawn(tree.make("pod/container"), [] { allocate(8 * kMiB); });
}

struct Totals {
  std::array<std::uint32_t, HR_GROUPS> compared{};
  std::map<std::string, unsigned> rounds_by_field;  // "cgroup field" → looks that disagreed
  std::map<std::string, observe::Disagreement> last;
  std::array<std::uint32_t, HR_GROUPS> disagreed{};
};

void add(const observe::SelfCheck& self_check, Totals& totals) {
  for (std::size_t i = 0; i < HR_GROUPS; ++i)
    totals.compared[i] += self_check.compared[i];
  for (const observe::Disagreement& each : self_check.disagreements) {
    const std::string key = std::to_string(each.cgroup) + " " + std::string(each.field);
    ++totals.rounds_by_field[key];
    totals.last[key] = each;
    for (std::size_t i = 0; i < HR_GROUPS; ++i)
      totals.disagreed[i] += (each.group & (1u << i)) != 0;
  }
}

// The largest value of each field, to show that zeros were not compared with zeros.
void print_fields(std::span<const hr_record> records) {
  for (const RecordField& field : kRecordFields) {
    hr_u64 largest = 0;
    std::size_t known = 0;
    for (const hr_record& record : records) {
      const hr_u64 value = value_of(record, field);
      if (!(record.valid & field.group) || value == HR_UNKNOWN) continue;
      ++known;
      if (value != HR_NO_LIMIT) largest = std::max(largest, value);
    }
    std::printf("  %-16s known in %5zu, largest %llu\n", std::string(field.name).c_str(), known,
                static_cast<unsigned long long>(largest));
  }
}

}  // namespace

int main(int count, char** arguments) {
  int rounds = 5;
  std::string directory = "/var/tmp";
  std::ofstream libbpf;
  bool table = true;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(arguments[i]) == "--looks") rounds = std::atoi(arguments[i + 1]);
    if (std::string(arguments[i]) == "--dir") directory = arguments[i + 1];
    if (std::string(arguments[i]) == "--libbpf") libbpf.open(arguments[i + 1]);
    if (std::string(arguments[i]) == "--table") table = std::string(arguments[i + 1]) != "no";
  }
  bench::raise_descriptor_limit();
  const observe::CgroupRoot root = observe::find_cgroup_root();
  if (root.mount.empty()) {
    std::fprintf(stderr, "%s\n", root.unsupported_reason.c_str());
    return 1;
  }
  utsname system{};
  uname(&system);
  std::printf("%s %s\n", system.release, root.unsupported_reason.c_str());

  bench::TestCgroupTree tree(root.mount, "parity");
  start_load(tree, directory);
  auto bpf = observe::BpfSweep::open(
      {.root = root.mount, .index_table = table, .log = [&](std::string_view line) {
         libbpf << line << '\n';
       }});
  if (!bpf) {
    std::printf("%s\n", bpf.error().what.c_str());
    return 1;
  }
  sleep(4);  // a kernel may average pressure and flush statistics every two seconds

  Totals totals;
  for (int round = 0; round < rounds; ++round) {
    auto self_check = observe::run_self_check(**bpf, {.root = root.mount, .cgroups = 100'000});
    if (!self_check) {
      std::printf("%s\n", self_check.error().what.c_str());
      return 1;
    }
    add(*self_check, totals);
    usleep(300'000);
  }
  auto last = (*bpf)->sweep();
  std::printf("%zu cgroups, flushed by the pass: %s; anon, file, shmem by %s\n",
              last ? last->size() : 0, observe::group_list((*bpf)->flushed()).c_str(),
              std::string(observe::name((*bpf)->stat_indices().state)).c_str());
  if (last) print_fields(*last);

  std::printf("%-14s %9s %9s\n", "group", "compared", "disagreed");
  for (std::size_t i = 0; i < HR_GROUPS; ++i)
    std::printf("%-14s %9u %9u\n", std::string(kGroupNames[i]).c_str(), totals.compared[i],
                totals.disagreed[i]);
  bool wrong = false;
  for (const auto& [key, times] : totals.rounds_by_field) {
    wrong = wrong || times >= 2;
    std::printf("%s (%u of %d looks): %s\n", times >= 2 ? "DISAGREES" : "drift", times, rounds,
                to_string(totals.last[key]).c_str());
  }
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    if (totals.compared[i] > 0 || !root.unsupported_reason.empty()) continue;
    std::printf("NEVER COMPARED: %s\n", std::string(kGroupNames[i]).c_str());
    wrong = true;
  }

  auto best = observe::BestSource::open({.root = root.mount});
  if (best) {
    std::printf("best source: %s\n", std::string((*best)->name()).c_str());
    for (const std::string& reason : (*best)->source_notes())
      std::printf("  %s\n", reason.c_str());
  }
  std::printf("%s\n", wrong ? "FAILED" : "ok");
  return wrong;
}
