// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/look.h"

#include "config/load.h"
#include "observe/filesystems.h"
#include "observe/manifest.h"
#include "observe/mount_of.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace headroom::ctl::check {
namespace {

namespace fs = std::filesystem;

std::string first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "";
}

// The root has none; any child will do.
Result<bool> look_for_kill(const fs::path& mount) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(mount, error))
    if (entry.is_directory(error)) return fs::exists(entry.path() / "cgroup.kill", error);
  return failure(error ? "list " + mount.string() + ": " + error.message()
                       : "there is no cgroup below the root to look at");
}

// With psi=0 the file is there and refuses to be opened.
bool has_pressure() {
  std::ifstream pressure("/proc/pressure/memory");
  std::string line;
  return static_cast<bool>(std::getline(pressure, line));
}

// Hidden addresses read as zero; where they are not, those of per-CPU variables alone may be.
Result<bool> shows_symbols() {
  std::ifstream symbols("/proc/kallsyms");
  std::string line;
  bool any = false;
  for (; std::getline(symbols, line); any = true)
    if (line.substr(0, line.find(' ')).find_first_not_of('0') != std::string::npos) return true;
  if (!any) return failure("/proc/kallsyms cannot be read");
  return false;
}

bool is_synchronised() {
  timex state{};
  return ::adjtimex(&state) != TIME_ERROR;
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

void look_at_configuration(Facts& facts) {
  config::Heard heard = config::read({});
  const observe::Manifests manifests = observe::read_manifests(heard.config.pod_manifests);
  for (const config::Complaint& complaint : heard.complaints)
    facts.configuration.push_back(to_string(complaint));
  for (const config::Complaint& complaint : manifests.complaints)
    facts.configuration.push_back(to_string(complaint));
  if (heard.config.slices.mode == SlicesMode::kEnforce) facts.enforced.push_back("headroom.slices");
  if (heard.config.cpus.mode == config::CpusConfig::Mode::kEnforce)
    facts.enforced.push_back("headroom.cpus");
  const config::DiskConfig& disk = heard.config.disk;
  facts.nodefs =
      observe::find_filesystems(
          {.nodefs = disk.nodefs, .imagefs = disk.imagefs, .containerfs = disk.containerfs})
          .nodefs;
  facts.project_quota = observe::has_project_quota(facts.nodefs);
}

}  // namespace

Facts look_at_host() {
  Facts facts;
  facts.root = ::geteuid() == 0;
  facts.kernel = kernel_release();
  facts.cgroups = observe::find_cgroup_root();
  facts.cgroup_kill = look_for_kill(facts.cgroups.mount);
  facts.pressure = has_pressure();
  facts.btf = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  facts.symbols = facts.root ? shows_symbols() : failure("not root: what it would see is not seen");
  facts.clock_source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.clock_synchronised = is_synchronised();
  facts.descriptors = most_descriptors();
  look_at_configuration(facts);
  look_at_bpf(facts);
  look_at_bus(facts);
  look_at_processes(facts);
  return facts;
}

}  // namespace headroom::ctl::check
