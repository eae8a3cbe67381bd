// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/manifest_input.h"
#include "ctl/common/print_error.h"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

struct AdmitOptions {
  std::string file;  // "-": standard input
  bool json = false;
};

using Json = nlohmann::json;

std::string printable_field(const Json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

std::string name_of(const Json& pod) {
  return printable_field(pod, "namespace") + "/" + printable_field(pod, "name");
}

// The kubelet's messages end with a space.
std::string trimmed(std::string text) {
  while (text.ends_with(' '))
    text.pop_back();
  return text;
}

std::string refusals(const Json& list, const Screen& screen) {
  std::vector<Row> rows;
  for (const Json& refusal : list)
    rows.push_back({{"  " + printable_field(refusal, "reason"), Colour::kYellow},
                    {printable_field(refusal, "by")},
                    {trimmed(printable_field(refusal, "message"))}});
  return rows.empty() ? "" : table(rows, 3, screen);
}

std::string heading(const Json& pod, const Screen& screen) {
  const bool admitted = pod.at("admitted").get<bool>();
  const std::size_t preempted = pod.at("preemption_victims").size();
  std::string verdict = admitted ? "admitted" : "refused";
  if (preempted > 0)
    verdict += fmt::format(", preempting {} pod{}", preempted, preempted == 1 ? "" : "s");
  return name_of(pod) + ": " +
         colourise(verdict, admitted ? Colour::kGreen : Colour::kRed, screen) + "\n";
}

std::string render_pod(const Json& pod, const Screen& screen) {
  std::string text = heading(pod, screen);
  text += refusals(pod.at("refusals"), screen);
  text += refusals(pod.at("resolved_by_preemption"), screen);
  for (const Json& other : pod.at("preemption_victims"))
    text += fmt::format("  preempts {} ({}, priority {})\n", name_of(other),
                        printable_field(other, "qos"), other.at("priority").get<std::int64_t>());
  for (const Json& taint : pod.at("untolerated_preferred_taints"))
    text += fmt::format("  another node is preferred: it does not tolerate {}\n",
                        printable(taint.get<std::string>()));
  return text;
}

}  // namespace

Result<RenderedAdmission> render_admission(std::string_view result, const Screen& screen) {
  RenderedAdmission rendered{"", true};
  try {
    const Json json = Json::parse(result);
    for (const Json& pod : json.at("pods")) {
      rendered.text += render_pod(pod, screen);
      rendered.all_admitted = rendered.all_admitted && pod.at("admitted").get<bool>();
    }
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
  return rendered;
}

namespace {

int run_admit(const AdmitOptions& options) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return print_error(manifest.error());
  const CallResult result = check_admission(manifest->text);
  if (!result) return print_error(result.error());
  const Screen screen{.colour = screen_of_stdout().colour};
  const auto rendered = render_admission(*result, screen);
  if (!rendered)
    return print_error(CallError{CallError::Kind::kUnreachable, rendered.error().what});
  std::fputs((options.json ? *result + "\n" : rendered->text).c_str(), stdout);
  return rendered->all_admitted ? 0 : kFailed;
}

}  // namespace

void add_admit(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<AdmitOptions>();
  auto* admit = app.add_subcommand("admit", "Would these pods be admitted now?");
  admit->group(kQueryGroup);
  admit->add_option("-f,--file", options->file, "A v1 Pod manifest; - is standard input")
      ->required();
  admit->add_flag("--json", options->json, "Print headroomd's answer as JSON");
  admit->callback([&chosen, options] { chosen = [options] { return run_admit(*options); }; });
}

}  // namespace headroom::ctl
