// SPDX-License-Identifier: Apache-2.0
// sweep: what reading every cgroup costs, by BPF and by files with kept descriptors, side by side.
//
//   sweep [--cgroups 100,1000,3000] [--rounds 31] [--every 1] [--json FILE]
//
// Makes pods of three containers below the cgroup2 root, all controllers enabled, a sleeping
// process in every --every'th container. Both sources read the same quantities of the same tree;
// their passes alternate, so that neither has the caches to itself, and the median pass counts. CPU
// time is the reading process's own: a BPF iterator runs in the process that reads it. The first
// pass of each source, which finds the tree, is not counted.
//
// A third figure is of passes as the daemon makes them between decisions, of the tree at rest: a
// sixteenth of the cgroups is read whole in each, and of the others those alone that were updated.
#include "observe/bpf/bpf_sweep.h"
#include "observe/cgroup/cgroup_source.h"
#include "observe/cgroup/cgroupfs_source.h"
#include "test_cgroup_tree.h"

#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

namespace {

using namespace headroom;

struct Options {
  std::vector<unsigned> cgroups{100, 1000, 3000};
  unsigned rounds = 31;
  unsigned nth_container = 1;
  std::string json;
};

struct Cost {
  unsigned cgroups = 0;
  std::size_t records = 0;
  double bpf = 0;  // ns of CPU time per cgroup
  double resting = 0;
  double files = 0;
  double ratio() const { return files / bpf; }
};

std::int64_t cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000ll + time.tv_nsec;
}

// One pass, in ns of CPU time per record.
double pass(observe::CgroupSource& source, std::size_t& records) {
  const std::int64_t began = cpu_time();
  auto swept = source.sweep();
  const std::int64_t took = cpu_time() - began;
  if (!swept) {
    std::fprintf(stderr, "%s\n", swept.error().what.c_str());
    std::exit(1);
  }
  records = swept->size();
  return static_cast<double>(took) / static_cast<double>(std::max<std::size_t>(1, records));
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void populate(bench::TestCgroupTree& tree, unsigned cgroups, unsigned nth_container) {
  const auto sleep = [] {
    for (;;)
      pause();
  };
  unsigned made = 1, containers = 0;  // the tree's own cgroup is one
  for (unsigned pod = 0; made < cgroups; ++pod) {
    const std::string name = "pod" + std::to_string(pod);
    tree.make(name, true);
    ++made;
    for (unsigned container = 0; container < 3 && made < cgroups; ++container, ++made) {
      const auto path = tree.make(name + "/container" + std::to_string(container));
      if (containers++ % nth_container == 0) tree.spawn(path, sleep);
    }
  }
}

// The mean of passes in which each cgroup had its turn twice.
double resting_pass(const observe::CgroupRoot& root) {
  constexpr int kPeriod = 16;
  auto bpf = observe::BpfSweep::open({.root = root.mount});
  if (!bpf) bench::die("open the sweep again");
  (*bpf)->idle_read_period(kPeriod);
  (*bpf)->set_compare_usage(false);
  std::size_t records = 0;
  for (int i = 0; i < 3; ++i)
    pass(**bpf, records);
  sleep(5);  // what was active is looked at for some seconds more
  pass(**bpf, records);
  double sum = 0;
  for (int i = 0; i < 2 * kPeriod; ++i)
    sum += pass(**bpf, records);
  return sum / (2 * kPeriod);
}

Cost measure(const observe::CgroupRoot& root, unsigned cgroups, const Options& options) {
  bench::TestCgroupTree tree(root.mount, "bench");
  populate(tree, cgroups, options.nth_container);
  auto bpf = observe::BpfSweep::open({.root = root.mount});
  auto files = observe::CgroupfsSource::open({.root = root.mount});
  if (!bpf || !files) {
    std::fprintf(stderr, "%s\n", (!bpf ? bpf.error() : files.error()).what.c_str());
    std::exit(1);
  }
  Cost cost{.cgroups = cgroups};
  for (int i = 0; i < 2; ++i) {
    pass(**bpf, cost.records);
    pass(**files, cost.records);
  }
  std::vector<double> by_bpf, by_files;
  for (unsigned round = 0; round < options.rounds; ++round) {
    std::size_t seen = 0;
    by_bpf.push_back(pass(**bpf, seen));
    by_files.push_back(pass(**files, cost.records));
    if (seen != cost.records)
      std::fprintf(stderr, "bpf saw %zu cgroups, files %zu\n", seen, cost.records);
  }
  cost.bpf = median(by_bpf);
  cost.files = median(by_files);
  cost.resting = resting_pass(root);
  return cost;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (i + 1 >= count)
      bench::die("usage: sweep [--cgroups N,…] [--rounds N] [--every K] [--json FILE]");
    const std::string value = arguments[++i];
    if (argument == "--cgroups") {
      options.cgroups.clear();
      std::istringstream list(value);
      for (std::string each; std::getline(list, each, ',');)
        options.cgroups.push_back(static_cast<unsigned>(std::stoul(each)));
    } else if (argument == "--rounds") {
      options.rounds = std::max(1u, static_cast<unsigned>(std::stoul(value)));
    } else if (argument == "--every") {
      options.nth_container = std::max(1u, static_cast<unsigned>(std::stoul(value)));
    } else if (argument == "--json") {
      options.json = value;
    } else {
      errno = EINVAL;
      bench::die(argument);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  bench::raise_descriptor_limit();
  const observe::CgroupRoot root = observe::find_cgroup_root();
  if (root.mount.empty()) {
    std::fprintf(stderr, "%s\n", root.unsupported_reason.c_str());
    return 1;
  }
  utsname system{};
  uname(&system);
  std::printf("%s, %s\n%8s %8s %14s %14s %8s %14s\n", system.release,
              root.unsupported_reason.empty() ? "all controllers" : root.unsupported_reason.c_str(),
              "cgroups", "records", "bpf ns/cgroup", "files ns/cgroup", "ratio", "resting ns");
  std::ostringstream json;
  for (unsigned cgroups : options.cgroups) {
    const Cost cost = measure(root, cgroups, options);
    std::printf("%8u %8zu %14.0f %14.0f %8.1f %14.0f\n", cost.cgroups, cost.records, cost.bpf,
                cost.files, cost.ratio(), cost.resting);
    std::fflush(stdout);
    json << (json.tellp() > 0 ? ",\n " : "[") << "{\"cgroups\": " << cost.cgroups
         << ", \"records\": " << cost.records << ", \"bpf_ns_per_cgroup\": " << cost.bpf
         << ", \"files_ns_per_cgroup\": " << cost.files << ", \"ratio\": " << cost.ratio()
         << ", \"resting_ns_per_cgroup\": " << cost.resting << ", \"kernel\": \"" << system.release
         << "\", \"all_controllers\": " << (root.unsupported_reason.empty() ? "true" : "false")
         << "}";
  }
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << (json.tellp() > 0 ? json.str() : "[") << "]\n";
  return file.good() ? 0 : 1;
}
