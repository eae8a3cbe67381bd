// SPDX-License-Identifier: Apache-2.0
#include "base/operating_system.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace headroom {
namespace {

using Family = OperatingSystem::Family;

// os-release(5): NAME=value, NAME="value" or NAME='value'.
std::string value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "=") continue;
    line.remove_prefix(name.size() + 1);
    if (line.size() >= 2 && (line.front() == '"' || line.front() == '\'') &&
        line.back() == line.front())
      line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return {};
}

Family family_named(std::string_view id) {
  constexpr std::pair<std::string_view, Family> kFamilies[] = {{"debian", Family::kDebian},
                                                               {"ubuntu", Family::kUbuntu},
                                                               {"fedora", Family::kFedora},
                                                               {"rhel", Family::kEnterprise},
                                                               {"centos", Family::kEnterprise},
                                                               {"rocky", Family::kEnterprise},
                                                               {"almalinux", Family::kEnterprise},
                                                               {"ol", Family::kEnterprise},
                                                               {"suse", Family::kSuse},
                                                               {"sles", Family::kSuse},
                                                               {"opensuse", Family::kSuse},
                                                               {"arch", Family::kArch}};
  for (const auto& [name, family] : kFamilies)
    if (id == name) return family;
  return Family::kUnknown;
}

// ID, then each word of ID_LIKE, which begins with the closest relative.
Family family_of(std::string_view id, std::string_view like) {
  Family family = family_named(id);
  while (family == Family::kUnknown && !like.empty()) {
    const std::size_t end = like.find(' ');
    family = family_named(like.substr(0, end));
    like.remove_prefix(end == std::string_view::npos ? like.size() : end + 1);
  }
  return family;
}

}  // namespace

OperatingSystem OperatingSystem::parse(std::string_view os_release) {
  OperatingSystem result;
  result.family_ = family_of(value_of(os_release, "ID"), value_of(os_release, "ID_LIKE"));
  result.image_based_ = !value_of(os_release, "OSTREE_VERSION").empty();
  if (family_named(value_of(os_release, "ID")) == Family::kUnknown) return result;
  result.codename_ = value_of(os_release, "VERSION_CODENAME");
  result.version_ = value_of(os_release, "VERSION_ID");
  return result;
}

OperatingSystem OperatingSystem::of_host() {
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"})
    if (std::ifstream in(file); in)
      return parse(std::string(std::istreambuf_iterator<char>(in), {}));
  return {};
}

std::string OperatingSystem::edit_kernel_arguments(const std::string& in_grub,
                                                   const std::string& grubby,
                                                   const std::string& rpm_ostree,
                                                   const std::string& otherwise) const {
  const std::string grub = in_grub + " GRUB_CMDLINE_LINUX in /etc/default/grub, run ";
  switch (family_) {
    case Family::kDebian:
    case Family::kUbuntu:
      return grub + "update-grub, then reboot";
    case Family::kFedora:
    case Family::kEnterprise:
      return image_based_ ? "rpm-ostree kargs " + rpm_ostree + ", then reboot"
                          : "grubby --update-kernel=ALL " + grubby + ", then reboot";
    case Family::kSuse:
      return grub + "grub2-mkconfig -o /boot/grub2/grub.cfg, then reboot";
    case Family::kArch:
      return grub + "grub-mkconfig -o /boot/grub/grub.cfg, then reboot";
    case Family::kUnknown:
      break;
  }
  return otherwise;
}

std::string OperatingSystem::add_kernel_arguments(std::string_view arguments) const {
  const std::string words(arguments);
  std::string appended = " " + words;
  for (std::size_t at = 0; (at = appended.find(' ', at)) != std::string::npos; at += 10)
    appended.replace(at, 1, " --append=");
  return edit_kernel_arguments("add " + words + " to", "--args='" + words + "'", appended.substr(1),
                               "boot with " + words);
}

std::string OperatingSystem::remove_kernel_argument(std::string_view argument) const {
  const std::string word(argument);
  return edit_kernel_arguments("remove " + word + " from", "--remove-args=" + word,
                               "--delete=" + word,
                               "remove " + word + " from the kernel's command line");
}

std::string OperatingSystem::use_cgroup_v2(bool unified) const {
  return unified ? remove_kernel_argument("cgroup_disable=")
                 : add_kernel_arguments("systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all");
}

std::string OperatingSystem::install(std::string_view package) const {
  const std::string name(package);
  switch (family_) {
    case Family::kDebian:
    case Family::kUbuntu:
      return "apt install " + name;
    case Family::kFedora:
    case Family::kEnterprise:
      return (image_based_ ? "rpm-ostree install " : "dnf install ") + name;
    case Family::kSuse:
      return "zypper install " + name;
    case Family::kArch:
      return "pacman -S " + name;
    case Family::kUnknown:
      break;
  }
  return "install " + name;
}

std::string OperatingSystem::upgrade_kernel(std::string_view version) const {
  const std::string wanted = "Linux " + std::string(version) + " or later";
  switch (family_) {
    case Family::kDebian:
      if (codename_.empty()) break;
      return wanted + ": apt install -t " + codename_ +
             "-backports linux-image-$(dpkg --print-architecture)";
    case Family::kUbuntu:
      if (version_.empty()) break;
      return wanted + ": apt install linux-image-generic-hwe-" + version_;
    case Family::kFedora:
      return wanted + (image_based_ ? ": rpm-ostree upgrade" : ": dnf upgrade kernel");
    case Family::kEnterprise:
      return wanted + ": release 10 has Linux 6.12";
    case Family::kSuse:
      return wanted + ": zypper update kernel-default, or a later release";
    case Family::kArch:
      return wanted + ": pacman -Syu linux";
    case Family::kUnknown:
      break;
  }
  return "use " + wanted;
}

}  // namespace headroom
