// SPDX-License-Identifier: Apache-2.0
// OperatingSystem: what os-release(5) says a host runs, and the commands with which a person
// changes such a host. A host that is not known gets the same advice without commands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

class OperatingSystem {
 public:
  enum class Family : std::uint8_t {
    kUnknown,
    kDebian,
    kUbuntu,
    kFedora,
    kEnterprise,
    kSuse,
    kArch
  };

  static OperatingSystem parse(std::string_view os_release);
  // Reads /etc/os-release, or /usr/lib/os-release.
  static OperatingSystem of_host();

  Family family() const { return family_; }
  // Each of these is one line: "grubby --update-kernel=ALL --args='psi=1', then reboot".
  std::string add_kernel_arguments(std::string_view arguments) const;
  std::string remove_kernel_argument(std::string_view argument) const;
  // For a host that has cgroup v1 hierarchies; one that has none but lacks controllers disables
  // them.
  std::string use_cgroup_v2(bool unified) const;
  // A package that has the same name in every distribution, as dbus and chrony have.
  std::string install(std::string_view package) const;
  // Where a kernel comes from that is at least VERSION.
  std::string upgrade_kernel(std::string_view version) const;

 private:
  std::string edit_kernel_arguments(const std::string& in_grub, const std::string& grubby,
                                    const std::string& rpm_ostree,
                                    const std::string& otherwise) const;

  Family family_ = Family::kUnknown;
  bool image_based_ = false;  // rpm-ostree: Fedora CoreOS, Silverblue
  // Empty for a derivative: its releases have names and numbers of their own.
  std::string codename_;
  std::string version_;
};

}  // namespace headroom
