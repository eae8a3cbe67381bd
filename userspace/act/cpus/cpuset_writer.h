// SPDX-License-Identifier: Apache-2.0
// CpusetWriter: writes the CPUs of a cgroup.
//
// systemd is the single writer of its units, so their CPUs are set through it (AllowedCPUs, until
// the next boot); cpuset.cpus itself is written only for cgroups that systemd does not manage.
// Calls may block for kTimeout: not on the loop.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sd_bus;

namespace headroom::act {

// The unit a cgroup is ("/a.slice/a-b.slice/c.service": "c.service"), if all above it are slices.
std::optional<std::string> unit_of(std::string_view path);

// As AllowedCPUs has it on the bus: bit n of byte m is CPU 8m + n.
std::vector<std::uint8_t> as_bitmap(const CpuSet& cpus);

class CpusetWriter {
 public:
  static constexpr std::chrono::seconds kTimeout{5};

  explicit CpusetWriter(std::filesystem::path cgroup_root,
                        std::filesystem::path control = "/run/systemd/system.control")
      : cgroup_root_(std::move(cgroup_root)), control_(std::move(control)) {}

  // `path` from the cgroup root on. No CPUs: no limit of its own any more. systemd answers before
  // it has written: look at the cgroup to know.
  Result<> write(const std::string& path, const CpuSet& cpus);

  // What was set for a unit outlives it in systemd's runtime directory: taken out once it is gone,
  // so that its like in name starts afresh, and pods that come and go leave nothing behind.
  void remove_drop_in(const std::string& path) const;

 private:
  Result<sd_bus*> bus();
  Result<> set_unit(const std::string& unit, const CpuSet& cpus);
  Result<> write_file(const std::string& path, const CpuSet& cpus);

  struct Close {
    void operator()(sd_bus* bus) const;
  };
  std::filesystem::path cgroup_root_;
  std::filesystem::path control_;
  std::unique_ptr<sd_bus, Close> bus_;
};

}  // namespace headroom::act
