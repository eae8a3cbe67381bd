// SPDX-License-Identifier: Apache-2.0
#include "daemon/dbus_handlers.h"

#include "judge/admission/pod_admission.h"
#include "manifest/manifest_reader.h"
#include "observe/node/cpu_topology.h"
#include "observe/node/numa_memory.h"

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using Json = nlohmann::ordered_json;

std::string to_json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json refusals_json(const std::vector<AdmitFailure>& refusals) {
  Json list = Json::array();
  for (const AdmitFailure& refusal : refusals) {
    Json entry{{"reason", refusal.reason}, {"by", name(refusal.by)}, {"message", refusal.message}};
    if (const auto& shortage = refusal.shortage) {
      entry["resource"] = shortage->resource;
      entry["requested"] = quantity_of(shortage->resource, shortage->requested).canonical();
      entry["used"] = quantity_of(shortage->resource, shortage->used).canonical();
      entry["capacity"] =
          shortage->capacity
              ? Json(quantity_of(shortage->resource, *shortage->capacity).canonical())
              : Json(nullptr);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json amounts_json(const ResourceList& list) {
  Json json = Json::object();
  for (const auto& [resource, quantity] : list)
    json[resource] = quantity.canonical();
  return json;
}

Json taints_json(const std::vector<Taint>& taints) {
  Json list = Json::array();
  for (const Taint& taint : taints)
    list.push_back(to_string(taint));
  return list;
}

Json admission_json(const Pod& pod, const NodeState& node) {
  const Admission admission = admit(pod, node);
  Json preempted = Json::array();
  for (const std::size_t index : admission.preempted)
    preempted.push_back({{"namespace", node.pods[index].pod_namespace},
                         {"name", node.pods[index].name},
                         {"uid", node.pods[index].uid},
                         {"qos", name(node.pods[index].qos)},
                         {"priority", node.pods[index].priority}});
  return {{"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"admitted", admission.admitted},
          {"refusals", refusals_json(admission.refusals)},
          {"resolved_by_preemption", refusals_json(admission.resolved_by_preemption)},
          {"preemption_victims", std::move(preempted)},
          {"untolerated_preferred_taints", taints_json(admission.untolerated_preferred)}};
}

// Any user may ask: each pod is compared with all that run, and each complaint is copied.
constexpr std::size_t kMaxPods = 1'000;
constexpr std::size_t kMaxComplaints = 100;

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

}  // namespace

Result<std::string> admit_json(const report::NodeStatusRef& status, const std::string& manifest) {
  if (!status) return failure("headroomd has not read the node yet; try again");
  const observe::Manifests manifests =
      observe::parse_manifests(manifest, "manifest", {.max_pods = kMaxPods});
  std::vector<std::string> diagnostics;
  for (const config::Diagnostic& diagnostic : manifests.diagnostics) {
    if (diagnostics.size() == kMaxComplaints) {
      diagnostics.push_back("and " + std::to_string(manifests.diagnostics.size() - kMaxComplaints) +
                            " more");
      break;
    }
    diagnostics.push_back(to_string(diagnostic));
  }
  if (diagnostics.empty() && manifests.pods.empty())
    diagnostics.emplace_back("there is no Pod in it");
  if (!diagnostics.empty()) return failure(join_lines(diagnostics));
  Json pods = Json::array();
  for (const Pod& pod : manifests.pods)
    pods.push_back(admission_json(pod, status->state));
  return to_json_text({{"node", status->state.name},
                       {"allocatable", amounts_json(status->allocatable)},
                       {"pods", std::move(pods)}});
}

Result<std::string> taint_json(TaintStore& store, const std::vector<std::string>& edits,
                               bool overwrite) {
  std::vector<TaintEdit> parsed;
  std::vector<std::string> errors;
  for (const std::string& text : edits) {
    auto edit = parse_taint_edit(text);
    if (edit)
      parsed.push_back(std::move(*edit));
    else
      errors.push_back(edit.error().what);
  }
  if (!errors.empty()) return failure(join_lines(errors));
  const auto taints = store.edit(parsed, overwrite);
  if (!taints) return tl::make_unexpected(taints.error());
  return to_json_text({{"taints", taints_json(*taints)}});
}

Result<std::string> cpus_response_json(const report::PublishedCpusView& cpus_view) {
  if (const auto view = cpus_view.latest()) return cpus_json(*view);
  const auto machine = observe::read_topology();
  if (!machine) return tl::make_unexpected(machine.error());
  const auto places = machine->topology.places();
  return report::cpus_json({.mode = "off",
                            .policy = "none",
                            .places = {places.begin(), places.end()},
                            .shared = machine->topology.cpus(),
                            .offline = machine->offline,
                            .isolated = machine->isolated,
                            .nohz_full = machine->nohz_full});
}

Result<std::string> memory_response_json(const report::PublishedCpusView& cpus_view) {
  const auto view = cpus_view.latest();
  if (view && view->memory) return report::memory_json(*view->memory);
  const auto sizes = observe::read_numa_memory();
  if (!sizes) return tl::make_unexpected(sizes.error());
  return report::memory_json({.mode = view ? view->mode : "off",
                              .policy = "None",
                              .nodes = MemoryPolicy(*sizes, {}).initial().machine});
}

}  // namespace headroom::daemon
