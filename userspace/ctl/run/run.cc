// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/run.h"

#include "act/transient_slice.h"
#include "base/fd.h"
#include "base/write_all.h"
#include "config/load.h"
#include "ctl/admit.h"
#include "ctl/client.h"
#include "ctl/complain.h"
#include "ctl/run/placed_pod.h"
#include "ctl/run/pod_text.h"
#include "observe/manifest.h"
#include "observe/node_source.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

struct RunOptions {
  PodWords words;
  bool pty = false;
  bool detach = false;
  bool json = false;
};

struct StopOptions {
  std::string name;
  std::string pod_namespace = "default";
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

std::string random_uid() {
  sd_id128_t id{};
  std::array<char, SD_ID128_UUID_STRING_MAX> text{};
  if (sd_id128_randomize(&id) < 0) return "";
  return sd_id128_to_uuid_string(id, text.data());
}

// The daemon's configuration says where manifests are and pods live.
Result<config::Config> configuration() {
  config::Heard heard = config::read({});
  if (heard.complaints.empty()) return std::move(heard.config);
  return failure(to_string(heard.complaints.front()) + "; headroomd --check-config says all");
}

// 0: admitted.
int admitted(const std::string& manifest) {
  const Answer answer = ask_admission(manifest);
  if (!answer) return complain(answer.error());
  const auto shown = render_admission(*answer, {});
  if (!shown) return complain(shown.error());
  if (shown->all_admitted) return 0;
  std::fputs(shown->text.c_str(), stderr);
  return kFailed;
}

// A name is one pod's at a time; who comes first makes the file.
Result<> write_manifest(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path fresh = path.native() + "." + std::to_string(::getpid());
  const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return errno_failure("create " + fresh.native(), errno);
  int code = write_all(file.get(), text);
  if (code == 0 && ::link(fresh.c_str(), path.c_str()) != 0) code = errno;
  ::unlink(fresh.c_str());
  if (code == 0) return {};
  if (code == EEXIST)
    return failure(path.native() +
                   " is there: a pod of this name runs already, see headroomctl stop");
  return errno_failure("write " + path.native(), code);
}

// systemd-run makes the unit, passes terminal or pipes and the exit status through, and waits. What
// the pod leaves behind the unit itself takes away, however it ends.
std::vector<std::string> command_line(const RunOptions& options, const PlacedPod& pod) {
  std::vector<std::string> words{
      "systemd-run",
      "--quiet",
      "--collect",
      "--unit=" + pod.unit,
      "--slice=" + pod.slice,
      "--description=pod " + options.words.pod_namespace + "/" + options.words.name,
      fmt::format("--property=OOMScoreAdjust={}", pod.oom_score_adj),
      "--property=ExecStopPost=-/bin/rm -f \"" + pod.manifest.native() + "\"",
      "--property=ExecStopPost=-/bin/systemctl --no-block stop " + pod.slice};
  if (options.words.grace_seconds)
    words.push_back(fmt::format("--property=TimeoutStopSec={}", *options.words.grace_seconds));
  if (!options.detach) {
    words.emplace_back("--wait");
    words.emplace_back(options.pty ? "--pty" : "--pipe");
  }
  words.emplace_back("--");
  words.insert(words.end(), options.words.command.begin(), options.words.command.end());
  return words;
}

volatile std::sig_atomic_t child_of_ours = 0;

void pass_on(int signal) {
  if (child_of_ours > 0) ::kill(static_cast<pid_t>(child_of_ours), signal);
}

// Its exit status, or 128 and the signal that ended it.
int spawn_and_wait(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return complain(Error{std::string("fork: ") + std::strerror(errno)});
  if (child == 0) {
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "headroomctl: run %s: %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  child_of_ours = child;
  // ^C reaches the child by itself. It ends, and so we stop the pod.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, &pass_on);
  std::signal(SIGHUP, &pass_on);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int start(const RunOptions& options, const PlacedPod& pod, const std::string& manifest) {
  if (auto written = write_manifest(pod.manifest, manifest); !written)
    return complain(written.error());
  int status = kFailed;
  if (auto made = act::start_transient_slice(pod.slice, pod.properties); made)
    status = spawn_and_wait(command_line(options, pod));
  else
    complain(made.error());
  if (options.detach && status == 0) return 0;
  // The unit did it, unless there was none, or systemd-run was ended before it.
  static_cast<void>(act::stop_unit(pod.unit));
  static_cast<void>(act::stop_unit(pod.slice));
  ::unlink(pod.manifest.c_str());
  return status;
}

int run(const RunOptions& options) {
  const PodWords& words = options.words;
  const std::string uid = random_uid();
  const auto text = pod_text(words, uid);
  if (!text) {
    for (const std::string& error : text.error())
      complain(Error{error});
    return kUsage;
  }
  const observe::Manifests manifests = observe::parse_manifests(*text, "the pod");
  if (!manifests.complaints.empty() || manifests.pods.size() != 1)
    return complain(manifests.complaints);
  const auto config = configuration();
  if (!config) return complain(config.error());
  const auto memory = observe::NodeSource({}).memory_capacity();
  if (!memory) return complain(Error{"read MemTotal of /proc/meminfo: it is not there"});
  const auto pod = place_here(manifests.pods.front(), *config, *memory);
  if (!pod) return complain(pod.error());
  if (const int refused = admitted(*text)) return refused;
  const int status = start(options, *pod, *text);
  if (options.json && status == 0)
    print({{"namespace", words.pod_namespace},
           {"name", words.name},
           {"uid", uid},
           {"unit", pod->unit},
           {"slice", pod->slice},
           {"manifest", pod->manifest.native()}});
  return status;
}

int stop(const StopOptions& options) {
  const std::string unit = unit_of(options.pod_namespace, options.name);
  const auto stopped = act::stop_unit(unit);
  if (!stopped) return complain(stopped.error());
  if (options.json)
    print({{"namespace", options.pod_namespace}, {"name", options.name}, {"unit", unit}});
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<RunOptions>();
  PodWords& words = options->words;
  auto* run_app = app.add_subcommand("run", "Run a command as a pod, if the node admits it");
  run_app->group(kChanging);
  run_app->add_option("--name", words.name, "The pod's name")->required();
  run_app->add_option("--namespace", words.pod_namespace, "Its namespace")->capture_default_str();
  run_app->add_option("--request", words.requests, "What it is promised: cpu=500m,memory=256Mi");
  run_app->add_option("--limit", words.limits, "What it may use at the most: memory=512Mi");
  run_app->add_option("--priority", words.priority, "Its priority")->capture_default_str();
  run_app->add_option("--grace", words.grace_seconds, "Seconds between SIGTERM and SIGKILL");
  run_app->add_flag("--pty", options->pty, "On a terminal of its own, passed through");
  auto* detach = run_app->add_flag("--detach", options->detach, "Do not wait for it");
  run_app->add_flag("--json", options->json, "With --detach: what it runs as, as JSON")
      ->needs(detach);
  run_app->add_option("COMMAND", words.command, "The command and its arguments, after --")
      ->required();
  run_app->callback([&chosen, options] { chosen = [options] { return run(*options); }; });
}

void add_stop(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<StopOptions>();
  auto* stop_app = app.add_subcommand("stop", "Stop a pod that run has started");
  stop_app->group(kChanging);
  stop_app->add_option("NAME", options->name, "The pod's name")->required();
  stop_app->add_option("--namespace", options->pod_namespace, "Its namespace")
      ->capture_default_str();
  stop_app->add_flag("--json", options->json, "What was stopped, as JSON");
  stop_app->callback([&chosen, options] { chosen = [options] { return stop(*options); }; });
}

}  // namespace headroom::ctl
