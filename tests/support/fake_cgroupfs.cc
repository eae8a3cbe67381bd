// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cgroupfs.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace headroom::test {
namespace {

void write_below(const std::filesystem::path& path, const FakeCgroup& cgroup) {
  std::filesystem::create_directory(path);
  if (!cgroup.bare) std::ofstream(path / "cgroup.procs");
  for (const auto& [file, text] : cgroup.files)
    std::ofstream(path / file) << text;
  for (const FakeCgroup& child : cgroup.children)
    write_below(path / child.name, child);
}

}  // namespace

FakeCgroupfs::FakeCgroupfs(const FakeCgroup& root) {
  std::string path = std::filesystem::temp_directory_path() / "headroom-cgroupfs-XXXXXX";
  if (!mkdtemp(path.data())) {
    std::perror("make a fake cgroupfs");
    std::abort();
  }
  root_ = path;
  write_below(root_, root);
}

FakeCgroupfs::~FakeCgroupfs() {
  std::filesystem::remove_all(root_);
}

void FakeCgroupfs::write(const std::string& cgroup, const std::string& file,
                         const std::string& text) {
  std::ofstream(root_ / cgroup / file) << text;
}

void FakeCgroupfs::add(const std::string& parent, const FakeCgroup& cgroup) {
  write_below(root_ / parent / cgroup.name, cgroup);
}

void FakeCgroupfs::remove(const std::string& cgroup) {
  std::filesystem::remove_all(root_ / cgroup);
}

std::uint64_t FakeCgroupfs::id(const std::string& cgroup) const {
  struct stat status {};
  if (stat((root_ / cgroup).c_str(), &status) < 0) {
    std::perror(cgroup.c_str());
    std::abort();
  }
  return status.st_ino;
}

FakeCgroup full_cgroup(const std::string& name) {
  return {
      .name = name,
      .files =
          {
              {"cgroup.events", "populated 1\nfrozen 0\n"},
              {"memory.current", "1048576\n"},
              {"memory.swap.current", "8192\n"},
              {"memory.stat",
               "anon 1\nfile 2\nkernel 77\nshmem 3\nfile_mapped 88\nswapcached 89\ninactive_anon "
               "4\n"
               "active_anon 5\ninactive_file 6\nactive_file 7\nunevictable 8\nslab 99\n"
               "kernel_stack 21\npagetables 22\nslab_reclaimable 23\nslab_unreclaimable 24\n"
               "zswap 25\nzswapped 26\nanon_thp 27\nfile_thp 28\nshmem_thp 29\n"
               "workingset_refault_anon 31\nworkingset_refault_file 32\npgscan 33\npgsteal 34\n"
               "pgscan_kswapd 35\npgfault 36\npgmajfault 37\n"},
              {"memory.min", "4096\n"},
              {"memory.low", "8192\n"},
              {"memory.high", "max\n"},
              {"memory.max", "2097152\n"},
              {"memory.swap.max", "max\n"},
              {"memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n"},
              {"cpu.stat",
               "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnice_usec 0\nnr_periods 7\n"
               "nr_throttled 6\nthrottled_usec 5\nnr_bursts 4\nburst_usec 3\n"},
              {"cpu.pressure",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"},
              {"memory.pressure",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=13\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=14\n"},
              {"io.pressure",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=15\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=16\n"},
              {"pids.current", "9\n"},
              {"pids.max", "100\n"},
              {"memory.peak", "3145728\n"},
              {"cpu.weight", "79\n"},
              {"cpu.max", "50000 100000\n"},
              {"io.stat",
               "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
               "259:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=7 dios=8\n"},
          },
      .children = {},
      .bare = false,
  };
}

}  // namespace headroom::test
