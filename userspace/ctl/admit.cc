// SPDX-License-Identifier: Apache-2.0
#include "ctl/admit.h"

#include "ctl/client.h"
#include "ctl/complain.h"
#include "ctl/manifest_input.h"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

struct AdmitOptions {
  std::string file;  // "-": standard input
  bool json = false;
};

using Json = nlohmann::json;

std::string said(const Json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

std::string name_of(const Json& pod) {
  return said(pod, "namespace") + "/" + said(pod, "name");
}

// Messages of the kubelet's end in a blank.
std::string trimmed(std::string text) {
  while (text.ends_with(' '))
    text.pop_back();
  return text;
}

std::string refusals(const Json& list, const Screen& screen) {
  std::vector<Row> rows;
  for (const Json& refusal : list)
    rows.push_back(
        {{"  " + said(refusal, "reason"), Colour::kYellow}, {trimmed(said(refusal, "message"))}});
  return rows.empty() ? "" : table(rows, 2, screen);
}

std::string heading(const Json& pod, const Screen& screen) {
  const bool admitted = pod.at("admitted").get<bool>();
  const std::size_t displaced = pod.at("preempts").size();
  std::string verdict = admitted ? "admitted" : "refused";
  if (displaced > 0)
    verdict += fmt::format(", displacing {} pod{}", displaced, displaced == 1 ? "" : "s");
  return name_of(pod) + ": " + painted(verdict, admitted ? Colour::kGreen : Colour::kRed, screen) +
         "\n";
}

std::string render_pod(const Json& pod, const Screen& screen) {
  std::string text = heading(pod, screen);
  text += refusals(pod.at("refusals"), screen);
  text += refusals(pod.at("overcome"), screen);
  for (const Json& other : pod.at("preempts"))
    text += fmt::format("  displaces {} ({}, priority {})\n", name_of(other), said(other, "qos"),
                        other.at("priority").get<std::int64_t>());
  for (const Json& taint : pod.at("unwelcome"))
    text += fmt::format("  rather elsewhere: it does not tolerate {}\n",
                        printable(taint.get<std::string>()));
  return text;
}

}  // namespace

Result<AdmissionShown> render_admission(std::string_view answer, const Screen& screen) {
  AdmissionShown shown{"", true};
  try {
    const Json json = Json::parse(answer);
    for (const Json& pod : json.at("pods")) {
      shown.text += render_pod(pod, screen);
      shown.all_admitted = shown.all_admitted && pod.at("admitted").get<bool>();
    }
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
  return shown;
}

namespace {

int run_admit(const AdmitOptions& options) {
  const auto manifest = read_manifest(options.file);
  if (!manifest) return complain(manifest.error());
  const Answer answer = ask_admission(manifest->text);
  if (!answer) return complain(answer.error());
  const Screen screen{.colour = screen_of_stdout().colour};
  const auto shown = render_admission(*answer, screen);
  if (!shown) return complain(NoAnswer{NoAnswer::Kind::kUnreachable, shown.error().what});
  std::fputs((options.json ? *answer + "\n" : shown->text).c_str(), stdout);
  return shown->all_admitted ? 0 : kFailed;
}

}  // namespace

void add_admit(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<AdmitOptions>();
  auto* admit = app.add_subcommand("admit", "Would these pods be admitted now?");
  admit->group(kAsking);
  admit->add_option("-f,--file", options->file, "A v1 Pod manifest; - is standard input")
      ->required();
  admit->add_flag("--json", options->json, "headroomd's answer as it is");
  admit->callback([&chosen, options] { chosen = [options] { return run_admit(*options); }; });
}

}  // namespace headroom::ctl
