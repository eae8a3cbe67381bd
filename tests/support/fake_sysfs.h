// SPDX-License-Identifier: Apache-2.0
// FakeSysfs: the part of /sys that describes CPUs, written from a short description.
#pragma once

#include "config/temp_dir.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace headroom::test {

struct FakeCpu {
  int cpu = 0;
  std::string siblings;  // core_cpus_list; "": no topology directory
  int socket = 0;
  std::string l3 = "0";  // its id; "": none; "shared 0-3": a cache without an id
};

class FakeSysfs {
 public:
  const std::filesystem::path& root() const { return directory_.path(); }

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  // "online", "present", "isolated", "nohz_full"
  void list(const std::string& name, const std::string& cpus) const {
    write("devices/system/cpu/" + name, cpus);
  }
  void node(int id, const std::string& cpus, const std::string& distance) const {
    const std::string directory = "devices/system/node/node" + std::to_string(id);
    write(directory + "/cpulist", cpus);
    write(directory + "/distance", distance);
  }
  void cpu(const FakeCpu& cpu) const {
    const std::string directory = "devices/system/cpu/cpu" + std::to_string(cpu.cpu);
    write(directory + "/cache/index0/level", "1");
    write(directory + "/cache/index0/id", std::to_string(100 + cpu.cpu));
    if (!cpu.siblings.empty()) {
      write(directory + "/topology/core_cpus_list", cpu.siblings);
      write(directory + "/topology/physical_package_id", std::to_string(cpu.socket));
    }
    if (cpu.l3.empty()) return;
    write(directory + "/cache/index3/level", "3");
    if (cpu.l3.starts_with("shared "))
      write(directory + "/cache/index3/shared_cpu_list", cpu.l3.substr(7));
    else
      write(directory + "/cache/index3/id", cpu.l3);
  }

 private:
  TempDir directory_;
};

}  // namespace headroom::test
