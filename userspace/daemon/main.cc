// SPDX-License-Identifier: Apache-2.0
// headroomd: see headroomd(8).
#include "base/block_signals.h"
#include "config/beside_kubelet.h"
#include "config/command_line.h"
#include "config/load.h"
#include "daemon/heard.h"
#include "daemon/loop.h"
#include "daemon/manifest_places.h"
#include "daemon/node.h"
#include "daemon/preflight.h"
#include "daemon/slice_terms.h"
#include "observe/manifest_shelf.h"
#include "report/journal.h"

#include <exception>
#include <iostream>

namespace {

using namespace headroom;

constexpr int kCannotRun = 1, kWrongConfiguration = 2;

int wrong(const config::Complaints& complaints) {
  config::print(complaints, std::cerr);
  return kWrongConfiguration;
}

int cannot_run(const Error& error) {
  std::cerr << "headroomd: " << error.what << '\n';
  return kCannotRun;
}

int serve(const config::CommandLine& line, config::Heard heard, observe::ManifestShelf shelf,
          observe::Manifests manifests) {
  block_signals();
  const log::Logging logging(heard.config.log_level);
  for (const std::string& warning : config::warnings_beside_kubelet(heard.config))
    log::warning("{}", warning);
  for (const config::Complaint& doubt : manifests.doubts)
    log::warning("{}", to_string(doubt));
  auto root = daemon::preflight(heard.config.policy.mode);
  if (!root) return cannot_run(root.error());
  daemon::settle_in();
  auto node = daemon::Node::start(std::move(heard.config), std::move(*root), std::move(manifests));
  if (!node) return cannot_run(node.error());
  auto loop = daemon::Loop::open(**node, line, std::move(shelf), std::move(heard.configz));
  if (!loop) return cannot_run(loop.error());
  if (auto ended = (*loop)->run(); !ended) return cannot_run(ended.error());
  return 0;
}

int run(int argc, char** argv) {
  auto line = config::parse_command_line(argc, argv);
  if (!line) return wrong(line.error());
  if (line->help) {
    std::cout << config::help_text();
    return 0;
  }
  if (line->version) {
    std::cout << "headroomd " << HEADROOM_VERSION << '\n';
    return 0;
  }
  // The manifests too, even beside a broken configuration: all that is wrong, at once.
  auto told = daemon::heard_here(*line, daemon::Occasion::kStart, &daemon::capacity_now);
  observe::ManifestShelf shelf;
  observe::Manifests manifests = shelf.look(daemon::manifest_places(told.config)).manifests;
  told.complaints.insert(told.complaints.end(), manifests.complaints.begin(),
                         manifests.complaints.end());
  if (!told.complaints.empty()) return wrong(told.complaints);
  if (line->check_config) {
    std::cout << "the configuration is good\n";
    return 0;
  }
  return serve(*line, std::move(told), std::move(shelf), std::move(manifests));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& thrown) {  // a library's: nothing of ours throws
    std::cerr << "headroomd: " << thrown.what() << '\n';
    return kCannotRun;
  }
}
