// SPDX-License-Identifier: Apache-2.0
#include "act/units/dbus_unit_manager.h"
#include "base/json_text.h"
#include "config/config.h"
#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/manifest_input.h"
#include "ctl/common/print_error.h"
#include "ctl/run/manifest_from_options.h"
#include "ctl/run/pod_units.h"
#include "ctl/run/preempt_pods.h"
#include "ctl/run/start_pod.h"
#include "judge/allocatable/pod_sizing.h"
#include "manifest/manifest_reader.h"
#include "observe/cgroup/cgroup_source.h"
#include "observe/node/capacity.h"
#include "observe/node/node_source.h"
#include "observe/node/systemd_units.h"

#include <headroom/result.h>

#include <systemd/sd-id128.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

// Reads this node's memory, swap and sizes of huge pages.

// `allocatable` is headroomd's value; 0 means the whole capacity.
Result<NodeMemory> node_memory(Bytes allocatable) {
  observe::NodeSource source({});
  const auto capacity = source.memory_capacity();
  if (!capacity) return failure("read MemTotal of /proc/meminfo: it is missing");
  NodeMemory node{.capacity = *capacity,
                  .swap = {},
                  .allocatable = allocatable > Bytes{0} ? allocatable : *capacity,
                  .huge_page_sizes = {},
                  .page = Bytes{::sysconf(_SC_PAGESIZE)}};
  Observations seen{};
  source.read_swap(seen);
  if (const auto& swap = of(seen, Signal::kSwapAvailable)) node.swap = Bytes{swap->capacity};
  for (const auto& [size, pool] : observe::huge_page_pools())
    node.huge_page_sizes.push_back(size);
  return node;
}

struct RunOptions {
  PodOptions pod_options;
  std::string file;
  bool pty = false;
  bool detach = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;
// A value, or the exit status after the error was printed.
template <class T>
using OrStatus = tl::expected<T, int>;

std::string random_uid() {
  sd_id128_t id{};
  std::array<char, SD_ID128_UUID_STRING_MAX> text{};
  if (sd_id128_randomize(&id) < 0) return "";
  return sd_id128_to_uuid_string(id, text.data());
}

// The daemon's configuration: directory of the manifests, cgroup of the pods, rules for limits.
Result<config::Config> configuration() {
  config::LoadResult loaded = config::read({});
  if (loaded.diagnostics.empty()) return std::move(loaded.config);
  return failure(to_string(loaded.diagnostics.front()) +
                 "; headroomd --check-config prints all errors");
}

struct Manifest {
  std::string text;
  std::string name;  // of the file, for error messages
  Pod pod;
};

OrStatus<Manifest> manifest_of_options(const PodOptions& pod_options) {
  auto text = manifest_from_options(pod_options, random_uid());
  if (!text) {
    for (const std::string& error : text.error())
      print_error(Error{error});
    return tl::make_unexpected(kUsage);
  }
  observe::Manifests manifests = observe::parse_manifests(*text, "the pod");
  if (!manifests.diagnostics.empty() || manifests.pods.size() != 1)
    return tl::make_unexpected(print_error(manifests.diagnostics));
  return Manifest{std::move(*text), "the pod", std::move(manifests.pods.front())};
}

// Checks the names that become part of the names of units and of a file.
config::Diagnostics invalid_names(const std::string& file, const Pod& pod) {
  config::Diagnostics diagnostics;
  const auto check = [&](const std::string& what, const std::string& name) {
    if (!is_dns_label(name))
      diagnostics.push_back({file, 0,
                             what +
                                 ": expected up to 63 lower-case letters, digits and dashes, "
                                 "found \"" +
                                 name + "\""});
  };
  check("metadata.name", pod.name);
  check("metadata.namespace", pod.pod_namespace);
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      check("the name of a container", container.name);
  return diagnostics;
}

OrStatus<Manifest> manifest_of_file(const std::string& file) {
  auto input = read_manifest(file);
  if (!input) return tl::make_unexpected(print_error(input.error()));
  const std::string name = file == "-" ? "standard input" : file;
  if (input->pods.size() != 1)
    return tl::make_unexpected(print_error(config::Diagnostics{
        {name, 0, "expected one Pod, found " + std::to_string(input->pods.size())}}));
  Manifest manifest{std::move(input->text), name, std::move(input->pods.front())};
  if (auto wrong = invalid_names(name, manifest.pod); !wrong.empty())
    return tl::make_unexpected(print_error(wrong));
  return manifest;
}

// Absent if the pod is admitted and the preempted pods are gone; else the exit status.
std::optional<int> reject_or_preempt(const AdmissionResult& admission, const std::string& name,
                                     const config::Config& config,
                                     const std::filesystem::path& cgroups) {
  if (!admission.admitted) {
    std::fputs(admission.text.c_str(), stderr);
    return kFailed;
  }
  if (auto gone = preempt_pods(admission.preempted, name, config, cgroups); !gone)
    return print_error(gone.error());
  return std::nullopt;
}

void print(const PodToStart& started, const AdmissionResult& admission) {
  Json units = Json::array();
  for (const ContainerUnit& container : started.pod_units.containers)
    units.push_back(container.unit);
  Json preempted = Json::array();
  for (const PreemptedPod& pod : admission.preempted)
    preempted.push_back(pod.pod_namespace + "/" + pod.name);
  const Json json{{"namespace", started.pod.pod_namespace},
                  {"name", started.pod.name},
                  {"uid", started.pod.uid},
                  {"units", std::move(units)},
                  {"slice", started.pod_units.slice},
                  {"manifest", started.pod_units.manifest.native()},
                  {"preempted", std::move(preempted)}};
  std::puts(to_json_text(json).c_str());
}

Streams streams_of(const RunOptions& options) {
  if (options.detach) return Streams::kNone;
  return options.pty ? Streams::kTerminal : Streams::kPipes;
}

int run(const RunOptions& options) {
  auto manifest = options.file.empty() ? manifest_of_options(options.pod_options)
                                       : manifest_of_file(options.file);
  if (!manifest) return manifest.error();
  auto programs = programs_of(manifest->text, manifest->name);
  if (!programs) return print_error(programs.error());
  if (options.pty && programs->size() > 1)
    return print_usage_error({"--pty: a terminal is for one container, and the pod has " +
                              std::to_string(programs->size())});
  const auto config = configuration();
  if (!config) return print_error(config.error());
  auto lock = lock_admission(config::run_lock(*config));
  if (!lock) return print_error(lock.error());
  const CallResult result = request_admission(manifest->text);
  if (!result) return print_error(result.error());
  const auto admission = read_admission(*result);
  if (!admission) return print_error(admission.error());
  const auto node = node_memory(admission->allocatable_memory);
  if (!node) return print_error(node.error());
  auto pod_units = make_pod_units(manifest->pod, *config, *node);
  if (!pod_units) return print_error(pod_units.error());
  const std::filesystem::path cgroups = observe::find_cgroup_root().mount;
  const std::string name = manifest->pod.pod_namespace + "/" + manifest->pod.name;
  if (const auto status = reject_or_preempt(*admission, name, *config, cgroups)) return *status;
  const PodToStart start{.pod = std::move(manifest->pod),
                         .pod_units = std::move(*pod_units),
                         .programs = std::move(*programs),
                         .manifest = std::move(manifest->text),
                         .cgroups = cgroups};
  const int status = start_pod(start, streams_of(options), std::move(*lock));
  if (options.json && status == 0) print(start, *admission);
  return status;
}

struct StopOptions {
  std::string name;
  std::string pod_namespace = "default";
  bool json = false;
};

using Json = nlohmann::ordered_json;
using UnitManager = std::vector<std::string>;

Result<UnitManager> units_of(const StopOptions& options) {
  const auto units = observe::list_systemd_units(kRunUnitPattern);
  if (!units) return tl::make_unexpected(units.error());
  UnitManager found;
  for (const observe::UnitState& unit : *units)
    if (const auto name = run_name(unit.unit);
        name && name->pod_namespace == options.pod_namespace && name->pod == options.name)
      found.push_back(unit.unit);
  if (found.empty())
    return failure("headroomctl run started no pod " + options.pod_namespace + "/" + options.name +
                   ", or it has ended; see headroomctl list");
  return found;
}

int stop(const StopOptions& options) {
  const auto units = units_of(options);
  if (!units) return print_error(units.error());
  // When the last main container stops, its unit stops the slice: the other units may be gone then.
  bool any = false;
  for (const std::string& unit : *units) {
    const auto stopped = act::stop_unit(unit);
    if (!stopped && !any) return print_error(stopped.error());
    any = true;
  }
  if (options.json) {
    const Json json{
        {"namespace", options.pod_namespace}, {"name", options.name}, {"units", *units}};
    std::puts(to_json_text(json).c_str());
  }
  return 0;
}

}  // namespace

void add_run(ArgumentParser& app, CliCommand& chosen) {
  const auto options = std::make_shared<RunOptions>();
  PodOptions& pod_options = options->pod_options;
  auto* run_app = app.add_subcommand("run", "Run a command or a manifest as a pod, if admitted");
  run_app->group(kChangeGroup);
  auto* file = run_app->add_option("-f,--file", options->file,
                                   "A v1 Pod whose containers have a command; - is standard input");
  const auto exclude_file = [&](const Argument* option) { file->excludes(option); };
  auto* name = run_app->add_option("--name", pod_options.name, "The pod's name");
  exclude_file(name);
  exclude_file(run_app->add_option("--namespace", pod_options.pod_namespace, "Its namespace")
                   ->capture_default_str());
  exclude_file(run_app->add_option("--request", pod_options.requests,
                                   "Its requests: cpu=500m,memory=256Mi"));
  exclude_file(run_app->add_option("--limit", pod_options.limits, "Its limits: memory=512Mi"));
  exclude_file(run_app->add_option("--priority", pod_options.priority, "Its priority")
                   ->capture_default_str());
  exclude_file(run_app->add_option("--grace", pod_options.grace_seconds,
                                   "Seconds between SIGTERM and SIGKILL (30)"));
  run_app->add_flag("--pty", options->pty, "Give it its own terminal, passed through");
  auto* detach = run_app->add_flag("--detach", options->detach, "Do not wait for it");
  run_app->add_flag("--json", options->json, "With --detach: print its units as JSON")
      ->needs(detach);
  auto* command = run_app->add_option("COMMAND", pod_options.command,
                                      "The command and its arguments, after --");
  exclude_file(command);
  run_app->callback([&chosen, options, file, name, command] {
    if (file->empty() && (name->empty() || command->empty()))
      throw_missing("--name and COMMAND, or --file");
    chosen = [options] { return run(*options); };
  });
}

void add_stop(ArgumentParser& app, CliCommand& chosen) {
  const auto options = std::make_shared<StopOptions>();
  auto* stop_app = app.add_subcommand("stop", "Stop a pod that headroomctl run started");
  stop_app->group(kChangeGroup);
  stop_app->add_option("NAME", options->name, "The pod's name")->required();
  stop_app->add_option("--namespace", options->pod_namespace, "Its namespace")
      ->capture_default_str();
  stop_app->add_flag("--json", options->json, "Print what was stopped, as JSON");
  stop_app->callback([&chosen, options] { chosen = [options] { return stop(*options); }; });
}

}  // namespace headroom::ctl
