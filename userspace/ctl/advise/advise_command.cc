// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"
#include "base/json_values.h"
#include "ctl/advise/pod_use.h"
#include "ctl/advise/reserves.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"
#include "report/eviction/messages.h"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

struct AdviseOptions {
  std::string file;
  std::string pod;  // "namespace/name"; "": all
  bool json = false;
};

std::string cpus_text(std::optional<double> cpus) {
  return cpus ? fmt::format("{:g}", *cpus) : "-";
}

// "100Mi -> 220Mi", or the present value.
Cell change(const std::string& present, bool changes, const std::string& advised) {
  return changes ? Cell{present + " -> " + advised, Colour::kYellow} : Cell{present};
}

Row row_of(const RecordedPod& recorded, const PodAdvice& advice) {
  const PodUse& use = recorded.use;
  return {
      {printable(report::pod_name(*recorded.pod))},
      change(bytes(use.memory_request), advice.memory_request.has_value(),
             bytes(advice.memory_request)),
      change(bytes(use.memory_limit), advice.memory_limit.has_value(), bytes(advice.memory_limit)),
      change(cpus_text(use.cpu_request), advice.cpu_request.has_value(),
             cpus_text(advice.cpu_request)),
      change(cpus_text(use.cpu_quota), advice.cpu_quota.has_value(), cpus_text(advice.cpu_quota))};
}

std::string evidence_of(const RecordedPod& recorded, const PodAdvice& advice) {
  const PodUse& use = recorded.use;
  std::string text = fmt::format("{}: {} samples in {}", printable(report::pod_name(*recorded.pod)),
                                 use.samples.size(), report::human(advice.observed));
  const auto size = [](double value) { return bytes(static_cast<std::int64_t>(value)); };
  if (advice.memory)
    text += fmt::format("; memory {} median, {} 95%, {} at most", size(advice.memory->median),
                        size(advice.memory->p95), size(advice.memory->most));
  if (advice.over_request)
    text += fmt::format(", over its request {:.1f}% of the time", *advice.over_request * 100);
  if (use.limit_hits > 0) text += fmt::format(", {} times at its limit", use.limit_hits);
  if (use.oom_kills > 0) text += fmt::format(", {} OOM kills", use.oom_kills);
  if (use.evictions > 0) text += fmt::format(", {} evictions", use.evictions);
  if (advice.cpu)
    text += fmt::format("; CPUs {:.2f} median, {:.2f} 90%, {:.2f} 99%", advice.cpu->median,
                        advice.cpu->p90, advice.cpu->p99);
  if (advice.throttled)
    text += fmt::format(", throttled in {:.1f}% of its periods", *advice.throttled * 100);
  if (!advice.enough) text += "; too short to advise from";
  return text + '\n';
}

Json summary_json(const std::optional<UseSummary>& use) {
  if (!use) return nullptr;
  return {{"median", use->median},
          {"p90", use->p90},
          {"p95", use->p95},
          {"p99", use->p99},
          {"max", use->most}};
}

Json pod_json(const RecordedPod& recorded, const PodAdvice& advice) {
  const PodUse& use = recorded.use;
  const auto of = [](const auto& present, const auto& advised) {
    return Json{{"present", or_null(present)}, {"advised", or_null(advised)}};
  };
  return {{"namespace", recorded.pod->pod_namespace},
          {"name", recorded.pod->name},
          {"uid", recorded.pod->uid},
          {"enough", advice.enough},
          {"memory_request", of(use.memory_request, advice.memory_request)},
          {"memory_limit", of(use.memory_limit, advice.memory_limit)},
          {"cpu_request", of(use.cpu_request, advice.cpu_request)},
          {"cpu_quota", of(use.cpu_quota, advice.cpu_quota)},
          {"evidence",
           {{"samples", use.samples.size()},
            {"seconds", seconds_of(advice.observed)},
            {"memory_bytes", summary_json(advice.memory)},
            {"cpus", summary_json(advice.cpu)},
            {"over_request_ratio", or_null(advice.over_request)},
            {"throttled_periods_ratio", or_null(advice.throttled)},
            {"limit_hits", use.limit_hits},
            {"oom_kills", use.oom_kills},
            {"evictions", use.evictions}}}};
}

int run_advise(const AdviseOptions& options) {
  auto tape = open_recording(options.file);
  if (!tape) return print_usage_error(tape.error());
  auto pods = read_pod_use(*tape);
  if (!pods) return print_usage_error(Error{options.file + ": " + pods.error().what});
  if (!options.pod.empty()) {
    std::erase_if(
        *pods, [&](const RecordedPod& each) { return report::pod_name(*each.pod) != options.pod; });
    if (pods->empty()) return print_error(Error{"no pod " + options.pod + " in " + options.file});
  }
  const std::string text =
      options.json ? advice_json(*pods) : render_advice(*pods, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

std::string render_advice(const std::vector<RecordedPod>& pods, const Screen& screen) {
  if (pods.empty()) return "no pods in the recording\n";
  Row titles;
  for (const char* title : {"POD", "MEMORY REQUEST", "MEMORY LIMIT", "CPU REQUEST", "CPU QUOTA"})
    titles.push_back({title, Colour::kBold});
  std::vector<Row> rows{std::move(titles)};
  std::string evidence;
  for (const RecordedPod& each : pods) {
    const PodAdvice advice = advise(each.use);
    rows.push_back(row_of(each, advice));
    evidence += evidence_of(each, advice);
  }
  return table(rows, 1, screen) + '\n' + evidence;
}

std::string advice_json(const std::vector<RecordedPod>& pods) {
  Json list = Json::array();
  for (const RecordedPod& each : pods)
    list.push_back(pod_json(each, advise(each.use)));
  return to_json_text(list) + "\n";
}

void add_advise(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<AdviseOptions>();
  auto* command =
      app.add_subcommand("advise", "Requests, limits and quotas that pods' recorded use asks for");
  command->group(kQueryGroup);
  command->add_option("FILE", options->file, "A recording; - is standard input");
  command->add_option("--pod", options->pod, "One pod: NAMESPACE/NAME");
  command->add_flag("--json", options->json, "As JSON, with the evidence");
  add_advise_reserves(*command, chosen);
  command->callback([&chosen, options, command] {
    if (command->subcommand_given()) return;
    if (options->file.empty()) throw_missing("FILE");
    chosen = [options] { return run_advise(*options); };
  });
}

}  // namespace headroom::ctl
