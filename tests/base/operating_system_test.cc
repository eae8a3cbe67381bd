// SPDX-License-Identifier: Apache-2.0
// The commands that are named for a host, by its os-release.
#include "base/operating_system.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

struct Case {
  const char* name;
  const char* os_release;
  const char* add;
  const char* remove;
  const char* install;
  const char* kernel;
};

const Case kCases[] = {
    {"debian",
     "PRETTY_NAME=\"Debian GNU/Linux 12 "
     "(bookworm)\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n",
     "add a=1 b=2 to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "remove c= from GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "apt install chrony",
     "Linux 6.1 or later: apt install -t bookworm-backports linux-image-$(dpkg "
     "--print-architecture)"},
    {"ubuntu", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy",
     "add a=1 b=2 to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "remove c= from GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "apt install chrony", "Linux 6.1 or later: apt install linux-image-generic-hwe-22.04"},
    {"a_relative_of_ubuntu", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
     "add a=1 b=2 to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "remove c= from GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot",
     "apt install chrony", "use Linux 6.1 or later"},
    {"fedora", "NAME='Fedora Linux'\nID=fedora\nVERSION_ID=43\n",
     "grubby --update-kernel=ALL --args='a=1 b=2', then reboot",
     "grubby --update-kernel=ALL --remove-args=c=, then reboot", "dnf install chrony",
     "Linux 6.1 or later: dnf upgrade kernel"},
    {"fedora_coreos", "ID=fedora\nOSTREE_VERSION='43.1'\n",
     "rpm-ostree kargs --append=a=1 --append=b=2, then reboot",
     "rpm-ostree kargs --delete=c=, then reboot", "rpm-ostree install chrony",
     "Linux 6.1 or later: rpm-ostree upgrade"},
    {"enterprise_clone", "ID=\"somename\"\nID_LIKE=\"rhel centos fedora\"\n",
     "grubby --update-kernel=ALL --args='a=1 b=2', then reboot",
     "grubby --update-kernel=ALL --remove-args=c=, then reboot", "dnf install chrony",
     "Linux 6.1 or later: release 10 has Linux 6.12"},
    {"suse", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
     "add a=1 b=2 to GRUB_CMDLINE_LINUX in /etc/default/grub, run grub2-mkconfig -o "
     "/boot/grub2/grub.cfg, then reboot",
     "remove c= from GRUB_CMDLINE_LINUX in /etc/default/grub, run grub2-mkconfig -o "
     "/boot/grub2/grub.cfg, then reboot",
     "zypper install chrony",
     "Linux 6.1 or later: zypper update kernel-default, or a later release"},
    {"arch", "ID=arch\n",
     "add a=1 b=2 to GRUB_CMDLINE_LINUX in /etc/default/grub, run grub-mkconfig -o "
     "/boot/grub/grub.cfg, then reboot",
     "remove c= from GRUB_CMDLINE_LINUX in /etc/default/grub, run grub-mkconfig -o "
     "/boot/grub/grub.cfg, then reboot",
     "pacman -S chrony", "Linux 6.1 or later: pacman -Syu linux"},
    {"unknown", "ID=flatcar\nBUILD_ID_LIKE=debian\n", "boot with a=1 b=2",
     "remove c= from the kernel's command line", "install chrony", "use Linux 6.1 or later"},
    {"no_file", "", "boot with a=1 b=2", "remove c= from the kernel's command line",
     "install chrony", "use Linux 6.1 or later"},
    {"hostile", "ID=\"\nID\n=debian\nID_LIKE=\"  \"\n", "boot with a=1 b=2",
     "remove c= from the kernel's command line", "install chrony", "use Linux 6.1 or later"},
};

class OperatingSystemAdvice : public testing::TestWithParam<Case> {};

TEST_P(OperatingSystemAdvice, NamesItsOwnCommands) {
  const Case& c = GetParam();
  const OperatingSystem host = OperatingSystem::parse(c.os_release);
  EXPECT_EQ(host.add_kernel_arguments("a=1 b=2"), c.add);
  EXPECT_EQ(host.remove_kernel_argument("c="), c.remove);
  EXPECT_EQ(host.install("chrony"), c.install);
  EXPECT_EQ(host.upgrade_kernel("6.1"), c.kernel);
}

INSTANTIATE_TEST_SUITE_P(Table, OperatingSystemAdvice, testing::ValuesIn(kCases),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace headroom
