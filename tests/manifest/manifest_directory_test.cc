// SPDX-License-Identifier: Apache-2.0
// A directory of manifests, read once: what is read of it, what is not, and what is said of it.
#include "config/temp_dir.h"
#include "manifest/manifest_cache.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tl/expected.hpp>

namespace headroom::observe {
namespace {

using test::TempDir;
using Lines = std::vector<std::string>;

Lines lines_of(const config::Diagnostics& diagnostics) {
  Lines lines;
  for (const config::Diagnostic& diagnostic : diagnostics)
    lines.push_back(to_string(diagnostic));
  return lines;
}

Lines names_of(const std::vector<Pod>& pods) {
  Lines all;
  for (const Pod& pod : pods)
    all.push_back(pod.pod_namespace + "/" + pod.name);
  return all;
}

std::string pod_text(const std::string& metadata) {
  return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n" + metadata +
         "spec:\n  containers:\n  - name: c\n";
}

const std::string kPodA = pod_text("");
const std::string kPodB = pod_text("  namespace: b\n");

std::string padded(std::string text, std::size_t size) {
  text += "# ";
  return text.append(size - text.size(), 'x');
}

// The pods of a directory, or what is wrong with it.
tl::expected<std::vector<Pod>, config::Diagnostics> load_manifests(
    const std::filesystem::path& directory) {
  Manifests manifests = read_manifests(directory);
  if (!manifests.diagnostics.empty()) return tl::make_unexpected(std::move(manifests.diagnostics));
  return std::move(manifests.pods);
}

TEST(Directory, RefusesAFileAboveOneMebibyte) {
  TempDir dir;
  const auto file = dir.write("a.yaml", padded(kPodA, kMaxManifestBytes));
  EXPECT_TRUE(load_manifests(dir.path()));
  dir.write("a.yaml", padded(kPodA, kMaxManifestBytes + 1));
  const auto pods = load_manifests(dir.path());
  ASSERT_FALSE(pods);
  EXPECT_EQ(lines_of(pods.error()), Lines{file.string() + ": larger than 1 MiB"});
}

// To open a FIFO for reading waits for its writer, and some devices never end.
TEST(Directory, RefusesWhatIsNoRegularFileWithoutWaiting) {
  TempDir dir;
  dir.write("a.yaml", kPodA);
  ASSERT_EQ(::mkfifo((dir.path() / "b.yaml").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", dir.path() / "c.yaml");
  std::filesystem::create_directory(dir.path() / "d.yaml");
  std::filesystem::create_symlink("e.yaml", dir.path() / "e.yaml");
  std::filesystem::create_symlink("none", dir.path() / "f.yaml");
  const Manifests manifests = read_manifests(dir.path());
  const std::string at = dir.path().string();
  EXPECT_EQ(
      lines_of(manifests.diagnostics),
      (Lines{at + "/b.yaml: not a regular file", at + "/c.yaml: not a regular file",
             at + "/d.yaml: not a regular file", at + "/e.yaml: Too many levels of symbolic links",
             at + "/f.yaml: No such file or directory"}));
  EXPECT_EQ(names_of(manifests.pods), Lines{"default/a"});
}

TEST(Directory, ReadsManifestsByNameAndPassesOverTheRest) {
  TempDir dir;
  dir.write("b.yml", kPodB);
  dir.write("a.yaml", kPodA);
  dir.write("c.json", R"({"apiVersion":"v1","kind":"List","items":[]})");
  dir.write(".hidden.yaml", "nonsense");
  dir.write("a.yaml~", "nonsense");
  dir.write("a.yaml.bak", "nonsense");
  dir.write(".a.yaml.swp", "nonsense");
  dir.write("README", "nonsense");
  const auto pods = load_manifests(dir.path());
  ASSERT_TRUE(pods) << lines_of(pods.error())[0];
  EXPECT_EQ(names_of(*pods), (Lines{"default/a", "b/a"}));
}

TEST(Directory, ThatIsNotThereHoldsNoPods) {
  TempDir dir;
  const auto pods = load_manifests(dir.path() / "absent");
  ASSERT_TRUE(pods);
  EXPECT_TRUE(pods->empty());
}

TEST(Directory, AFileIsNone) {
  TempDir dir;
  const auto pods = load_manifests(dir.write("f", ""));
  ASSERT_FALSE(pods);
  EXPECT_EQ(lines_of(pods.error())[0], (dir.path() / "f").string() + ": Not a directory");
}

TEST(Directory, AtRunTimeTheGoodOnesAreKept) {
  TempDir dir;
  dir.write("a.yaml", kPodA);
  dir.write("b.yaml", "kind: Deployment\n");
  std::filesystem::create_directory(dir.path() / "c.yaml");
  const Manifests manifests = read_manifests(dir.path());
  EXPECT_EQ(names_of(manifests.pods), (Lines{"default/a"}));
  const std::string path = dir.path();
  EXPECT_EQ(lines_of(manifests.diagnostics),
            (Lines{path + "/b.yaml:1: kind Deployment: expected Pod",
                   path + "/c.yaml: not a regular file"}));
  EXPECT_FALSE(load_manifests(dir.path()));
}

TEST(Directory, AUidTwiceIsAMistakeAndTheFirstStays) {
  TempDir dir;
  dir.write("a.yaml", pod_text("  uid: u-1\n"));
  dir.write("b.yaml", pod_text("  namespace: other\n  uid: u-1\n"));
  const Manifests manifests = read_manifests(dir.path());
  EXPECT_EQ(names_of(manifests.pods), (Lines{"default/a"}));
  const std::string path = dir.path();
  EXPECT_EQ(lines_of(manifests.diagnostics),
            (Lines{path +
                   "/b.yaml:1: pod other/a: duplicate uid u-1, it is "
                   "already at " +
                   path + "/a.yaml:1"}));
}

// headroom-kube's user writes the pods of a kubelet: it must not be able to exhaust the daemon's
// memory, which is locked.
TEST(Directory, IsReadUpToEightMebibytes) {
  TempDir dir;
  for (const char number : std::string("12345678"))
    dir.write(std::string("pod") + number + ".yaml",
              padded(pod_text(std::string("  uid: u") + number + "\n"), kMaxManifestBytes));
  EXPECT_EQ(read_manifests(dir.path()).pods.size(), 8u);
  dir.write("pod9.yaml", pod_text("  uid: u9\n"));
  dir.write("unread.yaml", "not read: no error");
  for (const bool of_kubelet : {false, true}) {
    const Manifests manifests = read_manifests(dir.path(), {.of_kubelet = of_kubelet});
    EXPECT_EQ(manifests.pods.size(), 8u);
    EXPECT_EQ(lines_of(of_kubelet ? manifests.kubelet_complaints : manifests.diagnostics),
              Lines{dir.path().string() +
                    "/pod9.yaml: this manifest and those after it are not read: more than 8 MiB in "
                    "the directory"});
  }
}

TEST(Directory, IsReadUpToItsFirstFilesByName) {
  TempDir dir;
  for (std::size_t i = 0; i < kMaxDirectoryFiles; ++i)
    dir.write("b" + std::to_string(i) + ".yaml", "");
  EXPECT_TRUE(load_manifests(dir.path()));
  dir.write("a.yaml", kPodA);
  dir.write("c.yaml", kPodB);
  const Manifests manifests = read_manifests(dir.path());
  EXPECT_EQ(names_of(manifests.pods), Lines{"default/a"});
  EXPECT_EQ(
      lines_of(manifests.diagnostics),
      Lines{dir.path().string() + ": 8194 manifests: those after the first 8192 are not read"});
}

TEST(Directory, ErrorsAreAThousandAndTheirNumber) {
  TempDir dir;
  for (std::size_t i = 0; i < kMaxErrors + 2; ++i)
    dir.write(std::to_string(i) + ".yaml", "kind: Deployment\n");
  const auto errors = lines_of(read_manifests(dir.path()).diagnostics);
  ASSERT_EQ(errors.size(), kMaxErrors + 1);
  EXPECT_TRUE(errors.back().ends_with(": and 2 more")) << errors.back();
}

}  // namespace
}  // namespace headroom::observe
