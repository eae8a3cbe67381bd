// SPDX-License-Identifier: Apache-2.0
#include "observe/node/systemd_units.h"

#include "base/bus/bus_message.h"
#include "base/bus/system_bus.h"

#include <systemd/sd-bus.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

// As the kernel keeps them, 15 letters; k3s is a kubelet in one program with the rest.
constexpr auto kNames = std::to_array<std::string_view>({"kubelet", "k3s-server", "k3s-agent"});

}  // namespace

bool kubelet_runs(const fs::path& proc) {
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().native().find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream comm(at->path() / "comm");
    std::string name;
    if (std::getline(comm, name) && std::ranges::find(kNames, name) != kNames.end()) return true;
  }
  return false;
}

namespace {

constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";

struct BusError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~BusError() { sd_bus_error_free(&error); }
};

struct Listed {
  UnitState state;
  std::string path;  // of its object on the bus
};

// One that went meanwhile has none of it.
void fetch_unit_details(sd_bus* bus, Listed& listed) {
  const auto number = [&](const char* interface, const char* property, char type, void* value) {
    sd_bus_get_property_trivial(bus, kSystemd, listed.path.c_str(), interface, property, nullptr,
                                type, value);
  };
  std::uint32_t pid = 0;
  number(kService, "MainPID", 'u', &pid);
  listed.state.main_pid = static_cast<pid_t>(pid);
  number(kUnit, "ActiveEnterTimestamp", 't', &listed.state.since_realtime);
  char* cgroup = nullptr;
  if (sd_bus_get_property_string(bus, kSystemd, listed.path.c_str(), kService, "ControlGroup",
                                 nullptr, &cgroup) < 0)
    return;
  listed.state.cgroup = cgroup;
  std::free(cgroup);
}

int read_units(sd_bus_message* reply, std::vector<Listed>& units) {
  int r = sd_bus_message_enter_container(reply, 'a', "(ssssssouso)");
  while (r > 0) {
    const char *name = nullptr, *active = nullptr, *sub = nullptr, *path = nullptr;
    r = sd_bus_message_read(reply, "(ssssssouso)", &name, nullptr, nullptr, &active, &sub, nullptr,
                            &path, nullptr, nullptr, nullptr);
    if (r > 0) units.push_back({{.unit = name, .active = active, .sub = sub}, path});
  }
  return r;
}

}  // namespace

Result<std::vector<UnitState>> list_systemd_units(const std::string& pattern) {
  const std::string doing = "list the units " + pattern;
  const auto bus = open_system_bus("headroom-units", kSystemdTimeout);
  if (!bus) return tl::make_unexpected(bus.error());
  sd_bus* opened = bus->get();
  BusError error;
  sd_bus_message* answered = nullptr;
  int r = sd_bus_call_method(opened, kSystemd, "/org/freedesktop/systemd1",
                             "org.freedesktop.systemd1.Manager", "ListUnitsByPatterns",
                             &error.error, &answered, "asas", 0, 1, pattern.c_str());
  const BusMessage answer(answered);
  std::vector<Listed> units;
  if (r >= 0) r = read_units(answered, units);
  if (r < 0)
    return error.error.message ? failure(doing + ": " + error.error.message, -r)
                               : errno_failure(doing, -r);
  std::ranges::sort(units, {}, [](const Listed& each) { return each.state.unit; });
  std::vector<UnitState> states;
  for (Listed& listed : units) {
    fetch_unit_details(opened, listed);
    states.push_back(std::move(listed.state));
  }
  return states;
}

}  // namespace headroom::observe
