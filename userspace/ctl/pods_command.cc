// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Pods = std::vector<const PodStatus*>;

const std::map<std::string, PodOrder> kOrders{{"name", PodOrder::kName},
                                              {"over", PodOrder::kOver},
                                              {"workingset", PodOrder::kWorkingSet},
                                              {"priority", PodOrder::kPriority},
                                              {"stalls", PodOrder::kStalls},
                                              {"throttled", PodOrder::kThrottled},
                                              {"disk", PodOrder::kDisk}};

struct PodsOptions {
  std::string sort = "over";
  bool json = false;
};

std::optional<std::int64_t> stalled(const PodStatus& pod) {
  if (!pod.stalls) return std::nullopt;
  std::int64_t ns = 0;
  for (const auto& [cause, waits] : *pod.stalls)
    ns += waits.ns;
  return ns;
}

// The sort key: highest first, except priorities, which are negated. Absent keys are last.
std::optional<std::int64_t> sort_key(const PodStatus& pod, PodOrder order) {
  switch (order) {
    case PodOrder::kName:
      return std::nullopt;
    case PodOrder::kOver:
      return pod.over;
    case PodOrder::kWorkingSet:
      return pod.working_set;
    case PodOrder::kPriority:
      return -pod.priority;
    case PodOrder::kStalls:
      return stalled(pod);
    case PodOrder::kThrottled:
      return pod.throttled;
    case PodOrder::kDisk:
      return pod.disk;
  }
  return std::nullopt;
}

// Equal keys are sorted by name. An absent key is less than any number.
Pods sorted(const Status& status, PodOrder order) {
  Pods pods;
  for (const PodStatus& pod : status.pods)
    pods.push_back(&pod);
  std::sort(pods.begin(), pods.end(), [&](const PodStatus* a, const PodStatus* b) {
    const auto of_a = sort_key(*a, order), of_b = sort_key(*b, order);
    if (of_a != of_b) return of_a > of_b;
    return std::tie(a->pod_namespace, a->name, a->uid) <
           std::tie(b->pod_namespace, b->name, b->uid);
  });
  return pods;
}

std::string time(std::optional<std::int64_t> ns) {
  return ns ? seconds(static_cast<double>(*ns) / 1e9) : "-";
}

// "limit 3m2s global 1.2s", the longest first.
std::string stalls_of(const PodStatus& pod) {
  if (!pod.stalls) return "unknown";
  std::vector<std::pair<std::int64_t, std::string>> causes;
  for (const auto& [cause, waits] : *pod.stalls)
    if (waits.ns > 0) causes.emplace_back(waits.ns, printable(cause));
  std::sort(causes.rbegin(), causes.rend());
  std::string text;
  for (const auto& [ns, cause] : causes)
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", cause, time(ns));
  return text.empty() ? "-" : text;
}

Row row_of(const PodStatus& pod) {
  const bool over = pod.over && *pod.over > 0;
  return {{printable(pod.name)},    {printable(pod.pod_namespace)},
          {printable(pod.qos)},     {std::to_string(pod.priority)},
          {bytes(pod.working_set)}, {bytes(pod.request)},
          {bytes(pod.limit)},       {bytes(pod.over), over ? Colour::kYellow : Colour::kNone},
          {time(pod.throttled)},    {bytes(pod.disk)},
          {stalls_of(pod)}};
}

// Below the table: what could not be parsed in the pods' descriptions.
std::string ignored_of(const PodStatus& pod, const Screen& screen) {
  std::string text;
  for (const std::string& field : pod.ignored)
    text += fmt::format(
        "{}: ignored {}\n",
        colourise(printable(pod.pod_namespace + "/" + pod.name), Colour::kYellow, screen),
        printable(field));
  return text;
}

// headroomd's JSON of each pod, sorted.
std::string pods_json(const Json& document, const Status& status, PodOrder order) {
  std::map<std::string, const Json*> by_uid;
  for (const Json& pod : document.at("pods"))
    by_uid.emplace(pod.value("uid", ""), &pod);
  Json list = Json::array();
  for (const PodStatus* pod : sorted(status, order))
    if (const auto found = by_uid.find(pod->uid); found != by_uid.end())
      list.push_back(*found->second);
  return to_json_text(list) + "\n";
}

int run_pods(const PodsOptions& options) {
  const auto document = fetch_status();
  if (!document) return print_error(document.error());
  const auto status = parse_status(*document);
  if (!status) return print_error(status.error());
  const PodOrder order = kOrders.at(options.sort);
  const std::string text = options.json ? pods_json(Json::parse(*document), *status, order)
                                        : render_pods(*status, order, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

std::string render_pods(const Status& status, PodOrder order, const Screen& screen) {
  Row titles;
  for (const char* title : {"POD", "NAMESPACE", "QOS", "PRIORITY", "WORKING SET", "REQUEST",
                            "LIMIT", "OVER", "THROTTLED", "DISK", "WAITED FOR MEMORY"})
    titles.push_back({title, Colour::kBold});
  std::vector<Row> rows{std::move(titles)};
  for (const PodStatus* pod : sorted(status, order))
    rows.push_back(row_of(*pod));
  if (rows.size() == 1) return "no pods\n";
  std::string text = table(rows, 3, screen);
  for (const PodStatus* pod : sorted(status, order))
    text += ignored_of(*pod, screen);
  return text;
}

void add_pods(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<PodsOptions>();
  auto* pods = app.add_subcommand("pods", "Every pod: memory, waits, throttling, disk");
  pods->group(kInspectGroup);
  std::vector<std::string> words;
  for (const auto& [word, order] : kOrders)
    words.push_back(word);
  pods->add_option("-s,--sort", options->sort, "The sort key")
      ->check_member(words)
      ->capture_default_str();
  pods->add_flag("--json", options->json, "headroomd's JSON of each pod, sorted");
  pods->callback([&chosen, options] { chosen = [options] { return run_pods(*options); }; });
}

}  // namespace headroom::ctl
