// SPDX-License-Identifier: Apache-2.0
// FileReader: what changes in a directory reaches the loop, and a file that hangs does not hold it
// up.
#include "daemon/sources/file_reader.h"

#include "config/temp_dir.h"
#include "support/cpu_time.h"

#include <poll.h>

#include <chrono>
#include <fstream>
#include <future>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Far longer than anything here takes: only a failure waits for it.
constexpr std::chrono::milliseconds kLimit{20'000};

void write_pod(const fs::path& directory, const std::string& name) {
  const fs::path fresh = directory / ".fresh";
  std::ofstream(fresh) << "apiVersion: v1\nkind: Pod\nmetadata: {name: " << name
                       << ", uid: " << name << "}\nspec: {containers: [{name: main}]}\n";
  fs::rename(fresh, directory / (name + ".yaml"));
}

// Takes what was read until `wanted` says that it is what the test waits for.
template <typename Wanted>
FileReader::News news_with(FileReader& reader, Wanted&& wanted) {
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (std::chrono::steady_clock::now() < end) {
    pollfd ready{.fd = reader.descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(kLimit.count())) <= 0) break;
    FileReader::News news = reader.take();
    if (wanted(news)) return news;
  }
  ADD_FAILURE() << "it was not read";
  return {};
}

std::unique_ptr<FileReader> start(FileReader::Load load) {
  auto reader = FileReader::start(std::move(load), {}, "");
  EXPECT_TRUE(reader.has_value());
  return std::move(*reader);
}

config::LoadResult loaded_with(const char* configz) {
  config::LoadResult loaded;
  loaded.configz = configz;
  return loaded;
}

TEST(FileReader, ReadsManifestsAtOnceAndWheneverTheyChange) {
  const test::TempDir dir;
  write_pod(dir.path(), "first");
  const auto reader = start([](const Amounts&) { return loaded_with(""); });
  reader->watch({.manifests = {{dir.path(), {}}}, .run_dir = {}, .configz = {}});
  news_with(*reader, [](const FileReader::News& news) {
    return news.manifests && news.manifests->pods.size() == 1;
  });
  write_pod(dir.path(), "second");
  news_with(*reader, [](const FileReader::News& news) {
    return news.manifests && news.manifests->pods.size() == 2;
  });
}

void write_pods(const fs::path& file, int count) {
  const fs::path fresh = file.parent_path() / ".fresh";
  std::ofstream text(fresh);
  for (int i = 0; i < count; ++i)
    text << "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p" << i
         << "}\nspec: {containers: [{name: main}]}\n";
  text.close();
  fs::rename(fresh, file);
}

// The CPU time of the fastest of three readings.
std::chrono::duration<double> time_to_read(const std::vector<observe::ManifestSource>& places) {
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    const double before = test::thread_cpu_seconds();
    observe::ManifestCache().read(places);
    least = std::min(least, test::thread_cpu_seconds() - before);
  }
  return std::chrono::duration<double>(least);
}

// The second reading comes after a rest of four times the first. Without one it would be over in
// twice the time of a reading, which is far longer than the delay that files are read after.
TEST(FileReader, RestsSeveralTimesAsLongAsAReadingTook) {
  const test::TempDir dir;
  const std::vector<observe::ManifestSource> places{{dir.path(), {}}};
  const auto pods_are = [](std::size_t count) {
    return [count](const FileReader::News& news) {
      return news.manifests && news.manifests->pods.size() == count;
    };
  };
  write_pods(dir.path() / "pods.yaml", 500);
  const auto reader = start([](const Amounts&) { return loaded_with(""); });
  reader->watch({.manifests = places, .run_dir = {}, .configz = {}});
  news_with(*reader, pods_are(500));
  const auto read_at = std::chrono::steady_clock::now();
  write_pods(dir.path() / "pods.yaml", 501);
  news_with(*reader, pods_are(501));
  EXPECT_GE(std::chrono::steady_clock::now() - read_at, 3 * time_to_read(places));
}

TEST(FileReader, FindsADirectoryThatIsMadeLater) {
  const test::TempDir dir;
  const fs::path later = dir.path() / "later";
  const auto reader = start([](const Amounts&) { return loaded_with(""); });
  reader->watch({.manifests = {{later, {.of_kubelet = true}}}, .run_dir = {}, .configz = {}});
  news_with(*reader, [](const FileReader::News& news) { return news.manifests.has_value(); });
  EXPECT_FALSE(fs::exists(later)) << "headroom-kube makes its own";
  fs::create_directory(later);
  write_pod(later, "pod");
  news_with(*reader, [](const FileReader::News& news) {
    return news.manifests && news.manifests->pods.size() == 1;
  });
}

TEST(FileReader, LoadsTheConfigurationForTheCapacityOfTheRequest) {
  const auto reader = start([](const Amounts& capacity) {
    return loaded_with(capacity.pids == Tasks{7} ? "seven" : "other");
  });
  reader->request_reload({.pids = Tasks{7}});
  const auto news =
      news_with(*reader, [](const FileReader::News& news) { return news.config.has_value(); });
  ASSERT_TRUE(news.config);
  EXPECT_EQ(news.config->configz, "seven");
}

TEST(FileReader, SaysThatTheKubeletsOwnConfigurationChangedAndReadsItWhenAsked) {
  const test::TempDir dir;
  const fs::path file = dir.path() / "kubelet.yaml";
  const auto reader =
      start([&](const Amounts&) { return loaded_with(config::configz_version(file).c_str()); });
  reader->watch({.manifests = {}, .run_dir = dir.path(), .configz = file});
  news_with(*reader, [](const FileReader::News& news) { return news.manifests.has_value(); });
  std::ofstream(dir.path() / "new") << "kind: KubeletConfiguration\n";
  fs::rename(dir.path() / "new", file);
  news_with(*reader, [](const FileReader::News& news) { return news.configz_changed; });
}

TEST(FileReader, EndsAndTakesRequestsWhileAFileHangs) {
  std::promise<void> mount_answers;
  const std::shared_future<void> answer = mount_answers.get_future().share();
  const auto began = std::chrono::steady_clock::now();
  {
    const auto reader = start([answer](const Amounts&) {
      answer.wait();
      return loaded_with("");
    });
    for (int i = 0; i < 3; ++i)
      reader->request_reload({});
    reader->watch({});
    EXPECT_FALSE(reader->take().config);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLimit);
  mount_answers.set_value();
}

}  // namespace
}  // namespace headroom::daemon
