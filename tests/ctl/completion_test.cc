// SPDX-License-Identifier: Apache-2.0
// Completions, from a small command line; bash's by bash itself.
#include "config/temp_dir.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"

#include <array>
#include <cstdio>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

class Completion : public testing::Test {
 protected:
  Completion() {
    auto* pods = app_.add_subcommand("pods", "Every pod's: [all]");
    pods->group("Looking");
    pods->add_option("-s,--sort", sort_, "The sort key")->check_member({"name", "over"});
    pods->add_flag("--json", json_, "It's JSON");
    auto* place = app_.add_subcommand("place", "Where");
    place->group("Asking");
    place->add_option("-f,--file", sort_, "A file");
    place->add_option("NODE", sort_, "Positional");
    auto* cpus = app_.add_subcommand("cpus", "CPUs");
    cpus->group("Looking");
    cpus->add_flag("--json", json_, "As JSON");
    auto* repack = cpus->add_subcommand("repack", "Again");
    repack->add_flag("--json", json_, "As JSON");
    repack->add_flag("--dry-run", json_, "Not really");
    add_completion(app_, chosen_);
  }

  // What bash would offer after these words; the last is being typed.
  std::string offered(const std::string& words, int index) {
    const test::TempDir dir;
    const auto script = dir.write("c", bash_completion(app_) + "COMP_WORDS=(" + words +
                                           "); COMP_CWORD=" + std::to_string(index) +
                                           "; _headroomctl; echo \"${COMPREPLY[@]}\"\n");
    FILE* bash = ::popen(("bash " + script.string() + " 2>&1").c_str(), "r");
    std::array<char, 4096> text{};
    const std::size_t read = std::fread(text.data(), 1, text.size(), bash);
    EXPECT_EQ(::pclose(bash), 0);
    return {text.data(), read};
  }

  ArgumentParser app_{"", "headroomctl"};
  CliCommand chosen_;
  std::string sort_;
  bool json_ = false;
};

TEST_F(Completion, OfBash) {
  EXPECT_EQ(offered("headroomctl ''", 1), "--help -h pods place cpus\n");
  EXPECT_EQ(offered("headroomctl p", 1), "pods place\n");
  EXPECT_EQ(offered("headroomctl pods --", 2), "--help --sort --json\n");
  EXPECT_EQ(offered("headroomctl pods --sort ''", 3), "name over\n");
  EXPECT_EQ(offered("headroomctl pods -s o", 3), "over\n");
  EXPECT_EQ(offered("headroomctl place -f ''", 3), "\n") << "left to files";
  EXPECT_EQ(offered("headroomctl cpus ''", 2), "--help -h --json --dry-run repack\n");
  EXPECT_EQ(offered("headroomctl completion ''", 2), "\n") << "hidden";
}

TEST_F(Completion, OfZshAndFishSayEveryCommandAndFlag) {
  const std::string zsh = zsh_completion(app_), fish = fish_completion(app_);
  EXPECT_NE(zsh.find("'(--sort -s)'{--sort,-s}'[The sort key]:value:(name over)'"),
            std::string::npos)
      << zsh;
  EXPECT_NE(zsh.find("'pods:Every pod'\\''s\\: [all]'"), std::string::npos) << zsh;
  EXPECT_NE(zsh.find("--json'[It'\\''s JSON]'"), std::string::npos) << zsh;
  EXPECT_NE(fish.find("'__fish_seen_subcommand_from pods' -l sort -s s -x -a 'name over'"),
            std::string::npos)
      << fish;
  EXPECT_NE(fish.find("-f -a place -d 'Where'"), std::string::npos) << fish;
  EXPECT_NE(zsh.find("'1::what:(repack)'"), std::string::npos) << zsh;
  EXPECT_NE(fish.find("'__fish_seen_subcommand_from cpus' -f -a repack"), std::string::npos)
      << fish;
  EXPECT_EQ(zsh.find("NODE"), std::string::npos);
  EXPECT_EQ(fish.find("completion\n"), std::string::npos);
}

}  // namespace
}  // namespace headroom::ctl
