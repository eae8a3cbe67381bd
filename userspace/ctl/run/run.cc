// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/run.h"

#include "config/load.h"
#include "config/run_paths.h"
#include "ctl/admit.h"
#include "ctl/client.h"
#include "ctl/complain.h"
#include "ctl/manifest_input.h"
#include "ctl/run/admitted.h"
#include "ctl/run/displace.h"
#include "ctl/run/node_memory.h"
#include "ctl/run/pod_text.h"
#include "ctl/run/started_pod.h"
#include "ctl/run/unit_name.h"
#include "observe/cgroup_root.h"
#include "observe/manifest.h"

#include <systemd/sd-id128.h>

#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

struct RunOptions {
  PodWords words;
  std::string file;
  bool pty = false;
  bool detach = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;
// Or the exit status of what has been complained of.
template <class T>
using OrStatus = tl::expected<T, int>;

std::string random_uid() {
  sd_id128_t id{};
  std::array<char, SD_ID128_UUID_STRING_MAX> text{};
  if (sd_id128_randomize(&id) < 0) return "";
  return sd_id128_to_uuid_string(id, text.data());
}

// The daemon's configuration says where manifests are, where pods live and how they are sized.
Result<config::Config> configuration() {
  config::Heard heard = config::read({});
  if (heard.complaints.empty()) return std::move(heard.config);
  return failure(to_string(heard.complaints.front()) + "; headroomd --check-config says all");
}

struct Manifest {
  std::string text;
  std::string name;  // of the file, for complaints
  Pod pod;
};

OrStatus<Manifest> manifest_of_words(const PodWords& words) {
  auto text = pod_text(words, random_uid());
  if (!text) {
    for (const std::string& error : text.error())
      complain(Error{error});
    return tl::make_unexpected(kUsage);
  }
  observe::Manifests manifests = observe::parse_manifests(*text, "the pod");
  if (!manifests.complaints.empty() || manifests.pods.size() != 1)
    return tl::make_unexpected(complain(manifests.complaints));
  return Manifest{std::move(*text), "the pod", std::move(manifests.pods.front())};
}

// What becomes part of the names of units and of a file.
config::Complaints objections_to_names(const std::string& file, const Pod& pod) {
  config::Complaints complaints;
  const auto check = [&](const std::string& what, const std::string& name) {
    if (!is_label(name))
      complaints.push_back({file, 0,
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
  return complaints;
}

OrStatus<Manifest> manifest_of_file(const std::string& file) {
  auto input = read_manifest(file);
  if (!input) return tl::make_unexpected(complain(input.error()));
  const std::string name = file == "-" ? "standard input" : file;
  if (input->pods.size() != 1)
    return tl::make_unexpected(complain(config::Complaints{
        {name, 0, "expected one Pod, found " + std::to_string(input->pods.size())}}));
  Manifest manifest{std::move(input->text), name, std::move(input->pods.front())};
  if (auto wrong = objections_to_names(name, manifest.pod); !wrong.empty())
    return tl::make_unexpected(complain(wrong));
  return manifest;
}

// Nothing: admitted, and whoever was in the way is gone.
std::optional<int> refused(const Admitted& admitted, const std::string& name,
                           const config::Config& config, const std::filesystem::path& cgroups) {
  if (!admitted.yes) {
    std::fputs(admitted.text.c_str(), stderr);
    return kFailed;
  }
  if (auto gone = displace(admitted.preempts, name, config, cgroups); !gone)
    return complain(gone.error());
  return std::nullopt;
}

void print(const PodToStart& started, const Admitted& admitted) {
  Json units = Json::array();
  for (const PlacedContainer& container : started.placed.containers)
    units.push_back(container.unit);
  Json displaced = Json::array();
  for (const Displaced& pod : admitted.preempts)
    displaced.push_back(pod.pod_namespace + "/" + pod.name);
  const Json json{{"namespace", started.pod.pod_namespace},
                  {"name", started.pod.name},
                  {"uid", started.pod.uid},
                  {"units", std::move(units)},
                  {"slice", started.placed.slice},
                  {"manifest", started.placed.manifest.native()},
                  {"displaced", std::move(displaced)}};
  std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

Streams streams_of(const RunOptions& options) {
  if (options.detach) return Streams::kNone;
  return options.pty ? Streams::kTerminal : Streams::kPassed;
}

int run(const RunOptions& options) {
  auto manifest =
      options.file.empty() ? manifest_of_words(options.words) : manifest_of_file(options.file);
  if (!manifest) return manifest.error();
  auto programs = programs_of(manifest->text, manifest->name);
  if (!programs) return complain(programs.error());
  if (options.pty && programs->size() > 1)
    return wrong_use({"--pty: a terminal is for one container, and the pod has " +
                      std::to_string(programs->size())});
  const auto config = configuration();
  if (!config) return complain(config.error());
  auto admission = lock_admission(config::run_lock(*config));
  if (!admission) return complain(admission.error());
  const Answer answer = ask_admission(manifest->text);
  if (!answer) return complain(answer.error());
  const auto admitted = read_admission(*answer);
  if (!admitted) return complain(admitted.error());
  const auto node = node_memory(admitted->allocatable_memory);
  if (!node) return complain(node.error());
  auto placed = place_here(manifest->pod, *config, *node);
  if (!placed) return complain(placed.error());
  const std::filesystem::path cgroups = observe::find_cgroup_root().mount;
  const std::string name = manifest->pod.pod_namespace + "/" + manifest->pod.name;
  if (const auto status = refused(*admitted, name, *config, cgroups)) return *status;
  const PodToStart start{.pod = std::move(manifest->pod),
                         .placed = std::move(*placed),
                         .programs = std::move(*programs),
                         .manifest = std::move(manifest->text),
                         .cgroups = cgroups};
  const int status = start_pod(start, streams_of(options), std::move(*admission));
  if (options.json && status == 0) print(start, *admitted);
  return status;
}

}  // namespace

void add_run(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<RunOptions>();
  PodWords& words = options->words;
  auto* run_app = app.add_subcommand("run", "Run a command or a manifest as a pod, if admitted");
  run_app->group(kChanging);
  auto* file = run_app->add_option("-f,--file", options->file,
                                   "A v1 Pod whose containers have a command; - is standard input");
  const auto instead = [&](CLI::Option* option) { file->excludes(option); };
  auto* name = run_app->add_option("--name", words.name, "The pod's name");
  instead(name);
  instead(run_app->add_option("--namespace", words.pod_namespace, "Its namespace")
              ->capture_default_str());
  instead(run_app->add_option("--request", words.requests,
                              "What it is promised: cpu=500m,memory=256Mi"));
  instead(
      run_app->add_option("--limit", words.limits, "What it may use at the most: memory=512Mi"));
  instead(run_app->add_option("--priority", words.priority, "Its priority")->capture_default_str());
  instead(run_app->add_option("--grace", words.grace_seconds,
                              "Seconds between SIGTERM and SIGKILL (30)"));
  run_app->add_flag("--pty", options->pty, "On a terminal of its own, passed through");
  auto* detach = run_app->add_flag("--detach", options->detach, "Do not wait for it");
  run_app->add_flag("--json", options->json, "With --detach: what it runs as, as JSON")
      ->needs(detach);
  auto* command =
      run_app->add_option("COMMAND", words.command, "The command and its arguments, after --");
  instead(command);
  run_app->callback([&chosen, options, file, name, command] {
    if (file->empty() && (name->empty() || command->empty()))
      throw CLI::RequiredError("--name and COMMAND, or --file");
    chosen = [options] { return run(*options); };
  });
}

}  // namespace headroom::ctl
